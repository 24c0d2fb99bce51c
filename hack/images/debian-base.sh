#!/usr/bin/env bash
# Makes the root file system of one Debian suite, as small as debian:<suite>-slim, as a tar archive.
#
#   hack/images/debian-base.sh SUITE FILE.tar
#
# Packages come from the mirrors that this machine's own apt uses, so the result can be built wherever
# `apt-get install` works, with no image registry in reach. DEBIAN_MIRROR and DEBIAN_SECURITY_MIRROR override them.
set -euo pipefail

suite=${1:?usage: debian-base.sh SUITE FILE.tar}
target=${2:?usage: debian-base.sh SUITE FILE.tar}

# mirror_of LABEL prints the first repository of apt's configuration whose Release file carries that label.
# apt itself is asked: it reads one-line and deb822 sources alike.
mirror_of() {
  local uri
  # shellcheck disable=SC2016 # apt fills these in
  uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Label: $1" | head -n 1)
  printf '%s' "${uri%/}"
}

# A new machine knows its sources, but not yet what they hold. Several suites may be made at once, apt takes one caller.
(
  flock 8
  [[ -n $(mirror_of Debian) ]] || apt-get update
) 8>/var/lock/postgres-operator-apt.lock

main_mirror=${DEBIAN_MIRROR:-$(mirror_of Debian)}
security_mirror=${DEBIAN_SECURITY_MIRROR:-$(mirror_of Debian-Security)}
if [[ -z $main_mirror || -z $security_mirror ]]; then
  echo "debian-base: apt knows no mirror of Debian${main_mirror:+ security updates};" \
    "add it to apt's sources, or set DEBIAN_MIRROR and DEBIAN_SECURITY_MIRROR" >&2
  exit 1
fi

# A debootstrap older than the suite has no script for it; every suite since etch follows the one of sid.
script=
[[ -e /usr/share/debootstrap/scripts/$suite ]] || script=sid

# Without certificates apt could not go on with a mirror that is reached over TLS.
include=()
[[ $main_mirror$security_mirror == *https:* ]] && include=(--include=ca-certificates)

work=$(mktemp -d --tmpdir debian-base.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root

debootstrap --variant=minbase "${include[@]}" \
  --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$suite" "$root" "$main_mirror" ${script:+"$script"}

cat >"$root/etc/apt/sources.list" <<SOURCES
deb $main_mirror $suite main
deb $main_mirror $suite-updates main
deb $security_mirror $suite-security main
SOURCES

# Nobody reads manuals in a container; licences stay, as the packages' terms ask.
cat >"$root/etc/dpkg/dpkg.cfg.d/slim" <<'RULES'
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/info/*
path-exclude /usr/share/lintian/*
path-exclude /usr/share/locale/*
path-include /usr/share/locale/locale.alias
path-exclude /usr/share/man/*
RULES
find "$root/usr/share/doc" ! -type d ! -name copyright -delete
find "$root/usr/share/locale" -mindepth 1 -maxdepth 1 ! -name locale.alias -exec rm -rf {} +
rm -rf "$root"/usr/share/{info,lintian,man}/*

# A container has no init to start services with; 101 makes invoke-rc.d leave them alone at installation.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 0755 "$root/usr/sbin/policy-rc.d"
cat >"$root/etc/apt/apt.conf.d/slim" <<'CONF'
Acquire::Languages "none";
Acquire::GzipIndexes "true";
APT::AutoRemove::SuggestsImportant "false";
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
CONF

# An image whose build is cut short is thrown away: flushing every file to the disk would protect nothing.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"

# A mirror that is a snapshot serves expired index files. Whoever set up this machine's apt to take them has answered that
# question for its images too; apt's own answer, to refuse, is never changed here.
if [[ $(apt-config --format '%v' dump Acquire::Check-Valid-Until) == false ]]; then
  echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/snapshot-mirror"
fi

# What is particular to this machine, or would differ from one run to the next.
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/tmp/* \
  "$root"/etc/{hostname,resolv.conf} "$root"/etc/{passwd,group,shadow,gshadow}- \
  "$root"/var/cache/{debconf/*-old,ldconfig/aux-cache} "$root"/var/lib/dpkg/*-old
: >"$root/etc/machine-id"

mkdir -p "$(dirname "$target")"
tar --create --file "$work/base.tar" --directory "$root" --numeric-owner --sort=name --mtime=@0 \
  --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' .
# Renamed into place at the end: a file of that name is always whole.
mv "$work/base.tar" "$target.partial"
mv "$target.partial" "$target"
