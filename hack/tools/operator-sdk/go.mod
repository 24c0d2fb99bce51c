// Pins operator-sdk for hack/tools/build.sh.
module github.com/my-org/postgres-operator/hack/tools/operator-sdk

go 1.26.0

require github.com/operator-framework/operator-sdk v1.42.2

tool (
	github.com/operator-framework/operator-sdk/cmd/operator-sdk
	github.com/operator-framework/operator-sdk/images/scorecard-test
)
