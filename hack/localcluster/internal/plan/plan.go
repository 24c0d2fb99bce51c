package plan

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

// Names and addresses that are the same in every local cluster. One cluster fits on a machine.
const (
	// Bridge joins the nodes' networks. The control plane's address is on it, in the machine's own network.
	Bridge = "pgo0"
	// ControlAddress is where the API server, the registry and CoreDNS listen.
	ControlAddress = "172.30.0.1"
	// NetworkBits is the length of the prefix that the nodes' addresses share.
	NetworkBits = 24
	// PodNetwork holds all pods; node N has 10.244.N.0/24 of it.
	PodNetwork = "10.244.0.0/16"
	// ServiceNetwork holds the Services' addresses.
	ServiceNetwork = "10.96.0.0/16"
	// KubernetesService is the address of the Service "kubernetes": the first of ServiceNetwork.
	KubernetesService = "10.96.0.1"
	// ClusterDomain ends the names of Services.
	ClusterDomain = "cluster.local"
	// PauseImage is the image of pod sandboxes.
	PauseImage = "docker.io/local/pause:1"
	// CgroupPrefix begins the name of every control group that belongs to the cluster.
	CgroupPrefix = "pgo-"
	// NetworkPrefix begins the name of every network namespace and interface that belongs to the cluster.
	NetworkPrefix = "pgo"
	// MaxNodes keeps pod networks, addresses and names of interfaces within their room.
	MaxNodes = 9

	registryPort  = 5000
	apiServerPort = 6443
	etcdEndpoint  = "http://127.0.0.1:12379"
	etcdPeer      = "http://127.0.0.1:12380"
)

// Node is one node of the cluster: a network namespace and a control group with a kubelet, a containerd and a kube-proxy
// in them.
type Node struct {
	Name    string
	Address netip.Addr
	// PodCIDR is the node's part of PodNetwork.
	PodCIDR netip.Prefix
	// Netns is the name of the network namespace.
	Netns string
	// Link is the machine's end of the cable between Bridge and the node. With it down the node is cut off.
	Link string
	// Cgroup is the control group of everything of the node, without a leading slash.
	Cgroup string
	// Dir holds the node's disk: what survives its power being cut.
	Dir string
	// RunDir holds what a reboot would empty: sockets, running containers, addresses given to pods.
	RunDir string
}

// KubeletDir is the kubelet's root directory.
func (n Node) KubeletDir() string { return filepath.Join(n.Dir, "kubelet") }

// VolumesDir is where the CSI driver keeps the volumes of the node.
func (n Node) VolumesDir() string { return filepath.Join(n.Dir, "volumes") }

// ContainerdSocket is where the node's containerd listens.
func (n Node) ContainerdSocket() string { return filepath.Join(n.RunDir, "containerd.sock") }

// SystemCgroup holds the node's own programs; the pods are beside it.
func (n Node) SystemCgroup() string { return n.Cgroup + "/system" }

// Plan is the whole cluster.
type Plan struct {
	// Dir is the folder of all state but the registry's.
	Dir string
	// Cache is the folder of built tools and of the registry's content; it outlives clusters.
	Cache string
	Nodes []Node
}

// New plans a cluster of the given number of nodes, 1 to MaxNodes.
func New(dir, cache string, nodes int) (*Plan, error) {
	if nodes < 1 || nodes > MaxNodes {
		return nil, fmt.Errorf("%d nodes: a local cluster has 1 to %d nodes", nodes, MaxNodes)
	}
	if !filepath.IsAbs(dir) || !filepath.IsAbs(cache) || dir == "/" {
		return nil, fmt.Errorf("state folder %q, cache folder %q: both must be absolute paths, and not /", dir, cache)
	}
	p := &Plan{Dir: filepath.Clean(dir), Cache: filepath.Clean(cache)}
	for i := 1; i <= nodes; i++ {
		name := fmt.Sprintf("node-%d", i)
		home := filepath.Join(p.Dir, "nodes", name)
		p.Nodes = append(p.Nodes, Node{
			Name:    name,
			Address: netip.AddrFrom4([4]byte{172, 30, 0, byte(10 + i)}),
			PodCIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), 24),
			Netns:   NetworkPrefix + "-" + name,
			Link:    fmt.Sprintf("pgo-n%d", i),
			Cgroup:  CgroupPrefix + name,
			Dir:     home,
			RunDir:  filepath.Join(home, "run"),
		})
	}
	return p, nil
}

// Node finds a node by name.
func (p *Plan) Node(name string) (Node, error) {
	known := make([]string, 0, len(p.Nodes))
	for _, node := range p.Nodes {
		if node.Name == name {
			return node, nil
		}
		known = append(known, node.Name)
	}
	return Node{}, fmt.Errorf("node %q is not part of this cluster; its nodes are %v", name, known)
}

// Registry is HOST:PORT of the registry that serves every image name to the nodes.
func (p *Plan) Registry() string { return fmt.Sprintf("%s:%d", ControlAddress, registryPort) }

// APIServer is the URL of the API server.
func (p *Plan) APIServer() string { return fmt.Sprintf("https://%s:%d", ControlAddress, apiServerPort) }

// Etcd is the URL of etcd. It asks for no certificate and so listens on the machine's loopback alone, where no pod
// gets to.
func (p *Plan) Etcd() string { return etcdEndpoint }

// Kubeconfig is the administrator's kubeconfig.
func (p *Plan) Kubeconfig() string { return filepath.Join(p.Dir, "kubeconfig") }

// Path is a path below the state folder.
func (p *Plan) Path(parts ...string) string {
	return filepath.Join(append([]string{p.Dir}, parts...)...)
}

// Program is the path of a built tool.
func (p *Plan) Program(name string) string { return filepath.Join(p.Cache, "bin", name) }

// LogFile is where the output of a process goes.
func (p *Plan) LogFile(process string) string { return p.Path("logs", process+".log") }
