package plan

import (
	"fmt"
	"path/filepath"
)

// Process is one program that the cluster keeps running.
type Process struct {
	// Name is unique: "etcd", "node-1/kubelet".
	Name string
	// Program is an absolute path.
	Program string
	Args    []string
	// Node is set if the process belongs to a node: it then runs in the node's network and control group.
	Node *Node
	// Restartable processes keep nothing that could be out of step: a dead one is simply started again.
	Restartable bool
}

// Names of processes that are started alone.
const (
	EtcdName      = "etcd"
	APIServerName = "kube-apiserver"
	RegistryName  = "registry"
)

// ControlCgroup holds the processes that belong to no node.
const ControlCgroup = CgroupPrefix + "control"

// EtcdProcess keeps what the API server stores. Its content need not survive a crash of the machine, so it does not
// wait for the disk.
func (p *Plan) EtcdProcess() Process {
	return Process{Name: EtcdName, Program: p.Program("etcd"), Args: []string{
		"--data-dir=" + p.Path("etcd"),
		"--unsafe-no-fsync",
		"--listen-client-urls=" + etcdEndpoint,
		"--advertise-client-urls=" + etcdEndpoint,
		"--listen-peer-urls=" + etcdPeer,
		"--initial-advertise-peer-urls=" + etcdPeer,
		"--initial-cluster=default=" + etcdPeer,
		"--log-level=warn",
	}}
}

// RegistryProcess serves images. Its content is in the cache and outlives the cluster.
func (p *Plan) RegistryProcess() Process {
	return Process{Name: RegistryName, Program: p.Program("localcluster"), Restartable: true, Args: []string{
		"registry", "serve", p.Registry(), filepath.Join(p.Cache, "registry"),
	}}
}

// APIServerProcess has audit logging and the admission plug-ins that strict clusters use. The requestheader and
// proxy-client flags are what makes aggregated APIs work. Aggregator routing sends webhook calls straight to pods: the
// machine itself runs no kube-proxy.
func (p *Plan) APIServerProcess() Process {
	pki := func(name string) string { return p.Path("pki", name) }
	return Process{Name: APIServerName, Program: p.Program("kube-apiserver"), Args: []string{
		"--etcd-servers=" + etcdEndpoint,
		"--bind-address=" + ControlAddress,
		"--advertise-address=" + ControlAddress,
		fmt.Sprintf("--secure-port=%d", apiServerPort),
		"--service-cluster-ip-range=" + ServiceNetwork,
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--client-ca-file=" + pki("ca.crt"),
		"--tls-cert-file=" + pki("kube-apiserver.crt"),
		"--tls-private-key-file=" + pki("kube-apiserver.key"),
		"--kubelet-certificate-authority=" + pki("ca.crt"),
		"--kubelet-client-certificate=" + pki("kubelet-client.crt"),
		"--kubelet-client-key=" + pki("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc." + ClusterDomain,
		"--service-account-key-file=" + pki("service-account.key"),
		"--service-account-signing-key-file=" + pki("service-account.key"),
		"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + pki("front-proxy-client.key"),
		"--enable-aggregator-routing=true",
		"--audit-policy-file=" + p.Path("config", "audit-policy.yaml"),
		"--audit-log-path=" + p.Path("logs", "audit.log"),
		"--audit-log-maxsize=100", // MB
		"--audit-log-maxbackup=2",
	}}
}

// ControlPlane lists the processes, besides etcd and the API server, that belong to no node.
func (p *Plan) ControlPlane() []Process {
	kubeconfig := func(user string) string { return p.Path("config", user+".kubeconfig") }
	return []Process{
		{Name: "kube-controller-manager", Program: p.Program("kube-controller-manager"), Restartable: true, Args: []string{
			"--kubeconfig=" + kubeconfig("kube-controller-manager"),
			"--authentication-kubeconfig=" + kubeconfig("kube-controller-manager"),
			"--authorization-kubeconfig=" + kubeconfig("kube-controller-manager"),
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + p.Path("pki", "service-account.key"),
			"--root-ca-file=" + p.Path("pki", "ca.crt"),
			"--cluster-signing-cert-file=" + p.Path("pki", "ca.crt"),
			"--cluster-signing-key-file=" + p.Path("pki", "ca.key"),
			"--service-cluster-ip-range=" + ServiceNetwork,
			"--cluster-cidr=" + PodNetwork,
		}},
		{Name: "kube-scheduler", Program: p.Program("kube-scheduler"), Restartable: true, Args: []string{
			"--kubeconfig=" + kubeconfig("kube-scheduler"),
			"--authentication-kubeconfig=" + kubeconfig("kube-scheduler"),
			"--authorization-kubeconfig=" + kubeconfig("kube-scheduler"),
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
		}},
		{Name: "csi-controller", Program: p.Program("csi-driver"), Restartable: true, Args: []string{
			"--controller", "--socket=" + p.csiSocket(), "--data=" + p.Path("nodes"),
		}},
		{Name: "csi-provisioner", Program: p.Program("csi-provisioner"), Restartable: true, Args: []string{
			"--kubeconfig=" + kubeconfig("csi"),
			"--csi-address=" + p.csiSocket(),
			"--feature-gates=Topology=true",
			"--strict-topology=true", // the node that the scheduler has chosen, and no other
			"--default-fstype=xfs",
			"--leader-election=false",
			"--retry-interval-start=200ms",
		}},
		{Name: "csi-resizer", Program: p.Program("csi-resizer"), Restartable: true, Args: []string{
			"--kubeconfig=" + kubeconfig("csi"),
			"--csi-address=" + p.csiSocket(),
			"--leader-election=false",
			"--handle-volume-inuse-error=false", // volumes of this driver grow in use: no need to watch all pods
			"--retry-interval-start=200ms",
		}},
		{Name: "coredns", Program: p.Program("coredns"), Restartable: true, Args: []string{
			"-conf", p.Path("config", "Corefile"),
		}},
	}
}

// NodeProcesses lists the programs of a node in the order in which they start. containerd is not restartable by itself:
// whoever finds it dead cannot know what else of the node is left.
func (p *Plan) NodeProcesses(node Node) []Process {
	return []Process{
		{Name: node.Name + "/containerd", Program: p.Program("containerd"), Node: &node, Args: []string{
			"--config", filepath.Join(node.Dir, "config", "containerd.toml"),
		}},
		{Name: node.Name + "/kubelet", Program: p.Program("kubelet"), Node: &node, Restartable: true, Args: []string{
			"--config=" + filepath.Join(node.Dir, "config", "kubelet.yaml"),
			"--kubeconfig=" + filepath.Join(node.Dir, "config", "kubelet.kubeconfig"),
			"--hostname-override=" + node.Name,
			"--node-ip=" + node.Address.String(),
			"--root-dir=" + node.KubeletDir(),
			"--cert-dir=" + filepath.Join(node.Dir, "pki"),
		}},
		{Name: node.Name + "/kube-proxy", Program: p.Program("kube-proxy"), Node: &node, Restartable: true, Args: []string{
			"--config=" + filepath.Join(node.Dir, "config", "kube-proxy.yaml"),
			"--hostname-override=" + node.Name,
		}},
		{Name: node.Name + "/csi-driver", Program: p.Program("csi-driver"), Node: &node, Restartable: true, Args: []string{
			"--node=" + node.Name, "--kubelet-dir=" + node.KubeletDir(), "--data=" + p.Path("nodes"),
		}},
	}
}

func (p *Plan) csiSocket() string { return p.Path("config", "csi.sock") }
