#!/usr/bin/env bash
# Installs Debian packages that are missing. Does nothing, and quickly, if all are there.
#
#   hack/tools/apt.sh PACKAGE...
set -euo pipefail

missing=()
for package in "$@"; do
  [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

((UID == 0)) || { echo "apt.sh: these packages are missing, and only root can install them: ${missing[*]}" >&2; exit 1; }
exec 8>/var/lock/postgres-operator-apt.lock
flock 8
export DEBIAN_FRONTEND=noninteractive
echo "installing ${missing[*]}" >&2
# A new machine has no package lists; an old one may have stale lists that name files that are gone.
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }
