// The program behind hack/cluster. A module of its own, so that the operator's dependencies stay the operator's.
module github.com/my-org/postgres-operator/hack/localcluster

go 1.26.0

require (
	github.com/spf13/cobra v1.10.2
	golang.org/x/sys v0.48.0
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
)
