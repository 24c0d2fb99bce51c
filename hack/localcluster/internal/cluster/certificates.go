package cluster

import (
	"fmt"
	"path/filepath"

	"github.com/my-org/postgres-operator/hack/localcluster/internal/pki"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/plan"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/render"
)

const administrators = "system:masters"

// makeCertificates makes all keys, certificates and kubeconfigs of a new cluster.
func (c *Cluster) makeCertificates() error {
	ca, err := pki.NewAuthority("local-cluster")
	if err != nil {
		return err
	}
	frontProxy, err := pki.NewAuthority("local-cluster-front-proxy")
	if err != nil {
		return err
	}
	dir := c.plan.Path("pki")
	for name, pair := range map[string]pki.Pair{"ca": ca.Pair, "front-proxy-ca": frontProxy.Pair} {
		if err := pair.Write(dir, name); err != nil {
			return err
		}
	}
	for _, issue := range []struct {
		authority *pki.Authority
		file      string
		subject   pki.Subject
	}{
		{ca, "kube-apiserver", pki.Subject{Name: "kube-apiserver", Hosts: []string{
			plan.ControlAddress, plan.KubernetesService, "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc." + plan.ClusterDomain,
		}}},
		{ca, "kubelet-client", pki.Subject{Name: "kube-apiserver-kubelet-client", Groups: []string{administrators}}},
		{ca, "admin", pki.Subject{Name: "admin", Groups: []string{administrators}}},
		{ca, "service-account", pki.Subject{Name: "service-account"}},
		{frontProxy, "front-proxy-client", pki.Subject{Name: "front-proxy-client"}},
	} {
		pair, err := issue.authority.Issue(issue.subject)
		if err != nil {
			return err
		}
		if err := pair.Write(dir, issue.file); err != nil {
			return err
		}
	}
	return c.makeKubeconfigs(ca)
}

func (c *Cluster) makeKubeconfigs(ca *pki.Authority) error {
	users := []struct {
		path    string
		subject pki.Subject
	}{
		{c.plan.Kubeconfig(), pki.Subject{Name: "admin", Groups: []string{administrators}}},
		{c.plan.Path("config", "kube-controller-manager.kubeconfig"), pki.Subject{Name: "system:kube-controller-manager"}},
		{c.plan.Path("config", "kube-scheduler.kubeconfig"), pki.Subject{Name: "system:kube-scheduler"}},
		{c.plan.Path("config", "kube-proxy.kubeconfig"), pki.Subject{Name: "system:kube-proxy"}},
		{c.plan.Path("config", "coredns.kubeconfig"), pki.Subject{Name: "coredns"}},
		// The storage side-cars are root on this machine already.
		{c.plan.Path("config", "csi.kubeconfig"), pki.Subject{Name: "csi", Groups: []string{administrators}}},
	}
	for _, node := range c.plan.Nodes {
		users = append(users, struct {
			path    string
			subject pki.Subject
		}{
			filepath.Join(node.Dir, "config", "kubelet.kubeconfig"),
			pki.Subject{Name: "system:node:" + node.Name, Groups: []string{"system:nodes"}},
		})
		serving, err := ca.Issue(pki.Subject{Name: node.Name, Hosts: []string{node.Name, node.Address.String()}})
		if err != nil {
			return err
		}
		if err := serving.Write(filepath.Join(node.Dir, "pki"), "kubelet"); err != nil {
			return err
		}
	}
	for _, user := range users {
		pair, err := ca.Issue(user.subject)
		if err != nil {
			return err
		}
		file, err := render.Kubeconfig(user.path, c.plan.APIServer(), user.subject.Name, ca.Certificate, pair)
		if err != nil {
			return err
		}
		if err := write(file); err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", user.subject.Name, err)
		}
	}
	return nil
}
