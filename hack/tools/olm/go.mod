// Pins olm for hack/tools/build.sh.
module github.com/my-org/postgres-operator/hack/tools/olm

go 1.26.0

require github.com/operator-framework/operator-lifecycle-manager v0.46.0

tool (
	github.com/operator-framework/operator-lifecycle-manager/cmd/catalog
	github.com/operator-framework/operator-lifecycle-manager/cmd/copy-content
	github.com/operator-framework/operator-lifecycle-manager/cmd/olm
	github.com/operator-framework/operator-lifecycle-manager/cmd/package-server
	github.com/operator-framework/operator-lifecycle-manager/util/cpb
)
