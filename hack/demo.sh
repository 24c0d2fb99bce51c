#!/usr/bin/env bash
# Makes the sample cluster, waits until it is ready, and says how to query it. Part of `make demo`.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
export KUBECONFIG=${KUBECONFIG:-$(hack/cluster kubeconfig)}
export PATH=${POSTGRES_OPERATOR_CACHE:-$HOME/.cache/postgres-operator}/bin:$PATH

kubectl apply -f config/samples/db_v1alpha1_postgrescluster.yaml
if ! kubectl wait --for=condition=Ready postgrescluster/db --timeout 5m; then
  kubectl get postgrescluster db -o yaml
  exit 1
fi
kubectl get postgrescluster db
kubectl exec svc/db-primary -c postgres -- psql -X -c 'select application_name, state, sync_state from pg_stat_replication' app

cat <<END

A PostgreSQL cluster of three instances is running. Query it:

  export KUBECONFIG=$KUBECONFIG
  export PATH=${POSTGRES_OPERATOR_CACHE:-$HOME/.cache/postgres-operator}/bin:\$PATH
  kubectl get postgrescluster db
  kubectl exec -it svc/db-primary -c postgres -- psql app
  kubectl get secret db-app -o jsonpath='{.data.uri}' | base64 -d; echo    # what an application in the cluster connects with

Remove it with:  kubectl delete postgrescluster db   (its data too),  make cluster-down
END
