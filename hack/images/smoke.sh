#!/usr/bin/env bash
# Starts PostgreSQL from an image in buildah's storage and asks it a question, under a user id that the image does not
# know and with the server called by its full path, as the operator does it.
#
#   hack/images/smoke.sh IMAGE BINDIR
#
# It is for buildah, which lets a machine without a container runtime run a program of an image.
set -euo pipefail

image=${1:?usage: smoke.sh IMAGE BINDIR}
bindir=${2:?usage: smoke.sh IMAGE BINDIR}
uid=1000640000

export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=${STORAGE_DRIVER:-overlay}
container=$(buildah from --pull=never "$image")
trap 'buildah rm "$container" >/dev/null' EXIT

# initdb insists on a name for its user id. The operator mounts a passwd file; here the container's own gets a line.
buildah run --user 0:0 --network host "$container" -- sh -c \
  "echo 'somebody:x:$uid:0::/data:/bin/sh' >>/etc/passwd; install -d -o $uid -g 0 -m 0700 /data"
# shellcheck disable=SC2016 # for the shell in the container
buildah run --user "$uid:0" --network host "$container" -- sh -euc '
  bin=$1
  "$bin/initdb" --pgdata=/data/db --auth=trust --username=postgres --encoding=UTF8 --locale=en_US.UTF-8 \
    --data-checksums >/data/initdb.log 2>&1 || { cat /data/initdb.log; exit 1; }
  "$bin/pg_ctl" --pgdata=/data/db --silent --wait --log=/data/server.log \
    --options="-c listen_addresses= -c unix_socket_directories=/data" start || { cat /data/server.log; exit 1; }
  trap "$bin/pg_ctl --pgdata=/data/db --silent --mode=immediate stop" EXIT
  # A procedural language proves that the server finds its libraries, the extension that it finds its shared files.
  "$bin/psql" --host=/data --username=postgres --no-psqlrc --tuples-only --no-align --set=ON_ERROR_STOP=1 \
    --command="CREATE EXTENSION pg_stat_statements" --command="DO \$\$ BEGIN PERFORM 1; END \$\$" \
    --command="SELECT version()" postgres
' smoke "$bindir"
