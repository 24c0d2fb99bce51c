// Pins opm for hack/tools/build.sh.
module github.com/my-org/postgres-operator/hack/tools/opm

go 1.26.0

require github.com/operator-framework/operator-registry v1.73.0

tool github.com/operator-framework/operator-registry/cmd/opm
