package instance

import (
	"fmt"
	"strconv"

	"github.com/my-org/postgres-operator/internal/naming"
)

// Options are what an instance manager is told by its pod.
type Options struct {
	Version                string
	Cluster, Namespace     string
	Instance               string
	PodName, PodUID        string
	MemoryBytes, CPUMillis int64
	Paths                  Paths
	HealthAddress          string
	ControlAddress         string
	MetricsAddress         string
}

// Paths are where things are in the pod.
type Paths struct {
	Data, Lock, Configuration, TLS, Socket     string
	ServerSecret, ReplicationSecret, AppSecret string
	PostInit                                   string
}

// OptionsFromEnvironment reads what the operator wrote into the pod.
func OptionsFromEnvironment(version string, lookup func(string) (string, bool)) (Options, error) {
	options := Options{
		Version: version,
		Paths: Paths{
			Data: naming.DirData, Lock: naming.FileVolumeLock, Configuration: naming.DirController + "/configuration",
			TLS: naming.DirTLS, Socket: naming.DirSocket, ServerSecret: naming.DirServerSecret,
			ReplicationSecret: naming.DirReplicationSecret, AppSecret: naming.DirAppSecret, PostInit: naming.DirPostInit,
		},
		HealthAddress:  ":" + strconv.Itoa(naming.PortHealth),
		ControlAddress: ":" + strconv.Itoa(naming.PortControl),
		MetricsAddress: ":" + strconv.Itoa(naming.PortMetrics),
	}
	for name, target := range map[string]*string{
		naming.EnvCluster: &options.Cluster, naming.EnvNamespace: &options.Namespace, naming.EnvInstance: &options.Instance,
		naming.EnvPodName: &options.PodName, naming.EnvPodUID: &options.PodUID,
	} {
		value, _ := lookup(name)
		if value == "" {
			return options, fmt.Errorf("$%s is not set: this program is started by the pods that the operator makes", name)
		}
		*target = value
	}
	for name, target := range map[string]*int64{naming.EnvMemoryBytes: &options.MemoryBytes, naming.EnvCPUMillis: &options.CPUMillis} {
		value, set := lookup(name)
		if !set {
			continue
		}
		number, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return options, fmt.Errorf("$%s: %w", name, err)
		}
		*target = number
	}
	return options, nil
}
