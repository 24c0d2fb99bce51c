package cluster

import "github.com/my-org/postgres-operator/hack/localcluster/internal/plan"

func (c *Cluster) csiControl() []plan.Process       { return nil }
func (c *Cluster) csiNode(plan.Node) []plan.Process { return nil }
func (c *Cluster) csiManifests() []string           { return nil }
