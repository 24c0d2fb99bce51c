// Pins grpc-health-probe for hack/tools/build.sh.
module github.com/my-org/postgres-operator/hack/tools/grpc-health-probe

go 1.26.0

require github.com/grpc-ecosystem/grpc-health-probe v0.4.63

tool github.com/grpc-ecosystem/grpc-health-probe
