# Container images. hack/images/build.sh describes the variables; images/README.md says which image is for what.

## Images

IMAGE_TOOL ?= buildah
OPERATOR_IMAGE ?= docker.io/my-org/postgres-operator:dev
export IMAGE_TOOL OPERATOR_IMAGE
# Exported only if given: an empty value would count as a choice.
ifdef IMAGE_REGISTRY
export IMAGE_REGISTRY
endif

.PHONY: images
images: build ## Build the operator's image and push it (IMAGE_REGISTRY, IMAGE_TOOL, OPERATOR_IMAGE).
	VERSION=$(VERSION) REVISION=$$(git rev-parse HEAD 2>/dev/null) hack/images/build.sh operator

.PHONY: postgres-images
postgres-images: ## Build the PostgreSQL images that the tests run and push them.
	hack/images/build.sh postgres

.PHONY: test-images
test-images: ## Build the image of the writer that tests and benchmarks use, and push it.
	go build -trimpath -ldflags '-s -w' -o build/$(ARCH)/writer ./test/writer
	hack/images/build.sh writer
