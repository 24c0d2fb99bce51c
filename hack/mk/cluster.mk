# The local cluster. hack/localcluster/README.md describes it.

## Local cluster

ifdef NODES
cluster_nodes := --nodes $(NODES)
endif

.PHONY: cluster-up
cluster-up: ## Start the local cluster, or see that it runs well (NODES, default 3).
	hack/cluster up $(cluster_nodes)

.PHONY: cluster-down
cluster-down: ## End the local cluster; pushed images and logs stay.
	hack/cluster down

.PHONY: cluster-status
cluster-status: ## Show the processes, nodes and faults of the local cluster.
	@hack/cluster status
