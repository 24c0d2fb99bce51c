#!/usr/bin/env bash
# Installs the operator into the cluster of $KUBECONFIG (default: the local cluster), or removes it.
#
#   hack/deploy.sh           install, or bring up to date, and wait until it is available
#   hack/deploy.sh remove    remove the operator; PostgresClusters, their data and the CRD stay
#
#   OPERATOR_IMAGE           the operator's image; default docker.io/my-org/postgres-operator:dev
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
image=${OPERATOR_IMAGE:-docker.io/my-org/postgres-operator:dev}
bin=${POSTGRES_OPERATOR_CACHE:-$HOME/.cache/postgres-operator}/bin
export KUBECONFIG=${KUBECONFIG:-$(hack/cluster kubeconfig)}
export PATH=$bin:$PATH
namespace=postgres-operator-system

hack/tools/build.sh kustomize kubernetes crane >&2

# In the local cluster the image is named by its digest: a tag that is built again keeps its name, and nodes that have
# an older image of that name would go on using it.
if [[ -z ${IMAGE_REGISTRY:-} && $image != *@* ]]; then
  digest=$(crane digest --insecure "$(hack/cluster registry)/${image#*/}")
  image=${image%:*}@$digest
fi

# The image is set in a copy, so that the tree stays as it is committed.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r config "$work/config"
(cd "$work/config/manager" && kustomize edit set image "controller=$image")
kustomize build "$work/config/default" >"$work/all.yaml"

echo "cluster: $(kubectl config view --minify --output 'jsonpath={.current-context} at {.clusters[0].cluster.server}')" >&2
case ${1:-install} in
  install)
    kubectl apply --server-side --force-conflicts -f "$work/all.yaml"
    kubectl -n "$namespace" rollout status deployment/postgres-operator-controller-manager --timeout 5m
    ;;
  remove)
    kubectl -n "$namespace" delete deployment/postgres-operator-controller-manager --ignore-not-found
    ;;
  *)
    echo "usage: hack/deploy.sh [remove]" >&2
    exit 2
    ;;
esac
