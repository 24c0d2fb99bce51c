package render

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/my-org/postgres-operator/hack/localcluster/internal/pki"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/plan"
)

//go:embed templates
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(files, "templates/*"))

// File is a configuration file and where it goes.
type File struct {
	Path    string
	Content []byte
	// Secret files are for root alone.
	Secret bool
}

type values struct {
	Node           plan.Node
	Dir            string
	Registry       string
	PauseImage     string
	Runc           string
	ClusterDomain  string
	ControlAddress string
	PodNetwork     string
	Nameservers    string
}

func valuesOf(p *plan.Plan, node plan.Node, nameservers []string) values {
	return values{
		Node: node, Dir: p.Dir, Registry: p.Registry(), PauseImage: plan.PauseImage, Runc: p.Program("runc"),
		ClusterDomain: plan.ClusterDomain, ControlAddress: plan.ControlAddress, PodNetwork: plan.PodNetwork,
		Nameservers: strings.Join(nameservers, " "),
	}
}

// Control renders the files of the cluster as a whole. The nameservers are those of the machine, for names outside the
// cluster; there may be none.
func Control(p *plan.Plan, nameservers []string) ([]File, error) {
	v := valuesOf(p, plan.Node{}, nameservers)
	corefile, err := execute("Corefile", v)
	if err != nil {
		return nil, err
	}
	audit, err := execute("audit-policy.yaml", v)
	if err != nil {
		return nil, err
	}
	manifest, err := execute("cluster.yaml", v)
	if err != nil {
		return nil, err
	}
	return []File{
		{Path: p.Path("config", "Corefile"), Content: corefile},
		{Path: p.Path("config", "audit-policy.yaml"), Content: audit},
		{Path: p.Path("config", "cluster.yaml"), Content: manifest},
		{Path: p.Path("config", "resolv.conf"), Content: []byte("nameserver " + plan.ControlAddress + "\n")},
	}, nil
}

// Node renders the files of one node.
func Node(p *plan.Plan, node plan.Node) ([]File, error) {
	var out []File
	for _, file := range []struct{ template, path string }{
		{"containerd.toml", "containerd.toml"},
		{"hosts.toml", "registries/_default/hosts.toml"},
		{"cni.conflist", "cni/10-pods.conflist"},
		{"kubelet.yaml", "kubelet.yaml"},
		{"kube-proxy.yaml", "kube-proxy.yaml"},
	} {
		content, err := execute(file.template, valuesOf(p, node, nil))
		if err != nil {
			return nil, err
		}
		out = append(out, File{Path: filepath.Join(node.Dir, "config", file.path), Content: content})
	}
	return out, nil
}

// Kubeconfig renders a kubeconfig that holds its certificates.
func Kubeconfig(path, server, user string, ca []byte, pair pki.Pair) (File, error) {
	content, err := execute("kubeconfig.yaml", map[string]string{
		"Server":      server,
		"User":        user,
		"CA":          base64.StdEncoding.EncodeToString(ca),
		"Certificate": base64.StdEncoding.EncodeToString(pair.Certificate),
		"Key":         base64.StdEncoding.EncodeToString(pair.Key),
	})
	return File{Path: path, Content: content, Secret: true}, err
}

// Nameservers finds the name servers in the text of a resolv.conf. Those on the loopback are left out: CoreDNS would be
// asking itself.
func Nameservers(resolvConf string) []string {
	var out []string
	for line := range strings.Lines(resolvConf) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" || fields[1] == plan.ControlAddress {
			continue
		}
		if strings.HasPrefix(fields[1], "127.") || fields[1] == "::1" {
			continue
		}
		out = append(out, fields[1])
	}
	return out
}

func execute(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return out.Bytes(), nil
}
