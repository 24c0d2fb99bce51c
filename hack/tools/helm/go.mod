// Pins helm for hack/tools/build.sh.
module github.com/my-org/postgres-operator/hack/tools/helm

go 1.26.0

require helm.sh/helm/v3 v3.22.0

tool helm.sh/helm/v3/cmd/helm
