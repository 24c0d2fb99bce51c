# The targets of the project; `make help` lists them. What is long stands in hack/.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= 0.1.0-dev
# Tools, images and downloads are kept here, outside the tree. Nothing in it is needed: it is made again.
export POSTGRES_OPERATOR_CACHE ?= $(HOME)/.cache/postgres-operator
BIN := $(POSTGRES_OPERATOR_CACHE)/bin
ARCH := $(shell go env GOARCH)
# Which tests run: make e2e RUN=Switchover
RUN ?=
export CGO_ENABLED = 0

include hack/mk/*.mk

##@ Start

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^##@ /{printf "\n%s\n", substr($$0, 5)} /^## [A-Z]/{printf "\n%s\n", substr($$0, 4)} /^[a-z0-9-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
# Whatever cluster and registry the shell is set to: the demo is local.
demo: export KUBECONFIG :=
demo: export IMAGE_REGISTRY :=
demo: cluster-up images postgres-images deploy ## From nothing to a real PostgreSQL cluster of three instances that you can query.
	hack/demo.sh

.PHONY: test
test: unit envtest e2e ## Run every test of the project.

##@ Build

.PHONY: build
build: ## Build the program (operator and instance manager) into build/.
	go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o build/$(ARCH)/postgres-operator .

.PHONY: generate
generate: ## Write everything that is generated: deep copies, CRD, roles, API reference.
	hack/tools/build.sh controller-gen crd-ref-docs
	go generate ./api/...
	$(BIN)/controller-gen object paths=./api/...
	$(BIN)/controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	$(BIN)/controller-gen rbac:roleName=manager-role paths=./controllers/... output:rbac:artifacts:config=config/rbac
	$(BIN)/crd-ref-docs --source-path=api/v1alpha1 --config=hack/api-reference/config.yaml --templates-dir=hack/api-reference --renderer=markdown --output-path=docs/api-reference.md --log-level=ERROR

.PHONY: verify
verify: lint ## Generate anew and lint; fail if that changes a file that is committed.
	@before=$$(git status --porcelain); $(MAKE) --no-print-directory generate; go mod tidy -diff; \
	after=$$(git status --porcelain); \
	if [ "$$before" != "$$after" ]; then echo "verify: generated files differ from what is committed; run 'make generate' and commit:"; git status --short; git diff --stat; exit 1; fi

.PHONY: lint
lint: ## Lint the code (walls between packages, budgets, habits).
	hack/tools/build.sh golangci-lint
	$(BIN)/golangci-lint run --timeout 15m

##@ Test

.PHONY: unit
unit: ## Unit tests, and tests of the instance manager with real PostgreSQL processes.
	hack/tools/apt.sh postgresql xfsprogs
	go test -timeout 30m ./...
	for module in hack/localcluster hack/csi-driver; do (cd $$module && go test ./...); done

.PHONY: envtest
envtest: ## Tests against a real API server and etcd, without nodes.
	hack/tools/build.sh kubernetes etcd
	KUBEBUILDER_ASSETS=$(BIN) go test -tags envtest -timeout 20m -run '$(RUN)' ./controllers/... ./test/api/...

.PHONY: e2e
e2e: cluster-up images postgres-images test-images deploy ## End-to-end tests on the local cluster, or the one of KUBECONFIG: make e2e RUN=ScaleDown.
	go test -tags e2e -count 1 -timeout 60m -v -run '$(RUN)' ./test/e2e/...

.PHONY: bench-create
bench-create: cluster-up images postgres-images deploy ## Time from creation to ready, with medians.
	go run -tags bench ./test/bench/create

.PHONY: bench-failover
bench-failover: cluster-up images postgres-images test-images deploy ## Write outages and lost rows of each event, with medians (RUNS, EVENTS).
	go run -tags bench ./test/bench/failover $(if $(RUNS),-runs $(RUNS)) $(if $(EVENTS),-events '$(EVENTS)')

##@ Deploy

.PHONY: deploy
deploy: ## Install the operator into the current cluster, or bring it up to date.
	hack/deploy.sh

.PHONY: undeploy
undeploy: ## Remove the operator. Clusters, their data and the CRD stay.
	hack/deploy.sh remove

.PHONY: clean
clean: ## Remove what was built in the tree.
	rm -rf build dist
