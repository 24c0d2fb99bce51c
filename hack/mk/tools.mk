# Pinned tools. hack/tools/build.sh describes how they are built and kept.

## Tools

POSTGRES_OPERATOR_CACHE ?= $(HOME)/.cache/postgres-operator
export POSTGRES_OPERATOR_CACHE
TOOLS_BIN := $(POSTGRES_OPERATOR_CACHE)/bin
# Where envtest finds kube-apiserver, etcd and kubectl.
export KUBEBUILDER_ASSETS ?= $(TOOLS_BIN)

.PHONY: tools
tools: ## Build the pinned tools that development needs, once per version (the first time takes a while).
	hack/tools/build.sh crane controller-gen crd-ref-docs kustomize etcd kubernetes containerd runc coredns external-provisioner external-resizer golangci-lint

# One tool alone: make tool-controller-gen.
.PHONY: tool-%
tool-%:
	@hack/tools/build.sh $*
