#!/usr/bin/env bash
# Installs PostgreSQL into the image that images/postgres/Dockerfile builds. Its arguments come as environment variables,
# which that file describes.
set -euo pipefail

: "${PG_MAJOR:?set PG_MAJOR, for instance 17}" "${PACKAGES_FROM:?set PACKAGES_FROM to pgdg or debian}"
PG_VERSION=${PG_VERSION:-} LOCALES=${LOCALES:-} EXTRA=${EXTRA:-}
export DEBIAN_FRONTEND=noninteractive
# Without an answer dpkg would stop at createcluster.conf, which differs from the package's, when PGDG upgrades it.
install=(apt-get install --yes --no-install-recommends -o Dpkg::Options::=--force-confold)

die() {
  echo "install-postgres: $*" >&2
  exit 1
}

check_arguments() {
  if [[ -n $PG_VERSION && $PG_VERSION != "$PG_MAJOR".* ]]; then
    die "PG_VERSION=$PG_VERSION is no minor of PG_MAJOR=$PG_MAJOR; give both the same major"
  fi
  case $PACKAGES_FROM in
    pgdg | debian) ;;
    *) die "PACKAGES_FROM=$PACKAGES_FROM is unknown; use pgdg or debian" ;;
  esac
}

# add_user makes the user before the packages do, which would take the next free number: it has to be the same in every
# image that ever opens the same volume.
add_user() {
  groupadd --system --gid 999 postgres
  useradd --system --uid 999 --gid postgres --home-dir /var/lib/postgresql --shell /bin/bash postgres
  install --directory --owner=postgres --group=postgres --mode=0755 /var/lib/postgresql
  # Sticky and open to all, since the image may be run under any user id.
  install --directory --owner=postgres --group=postgres --mode=3777 /var/run/postgresql
}

# add_pgdg adds the PostgreSQL project's repository. Its key is taken from Debian's postgresql-common, which apt has
# verified already, and not from the network.
add_pgdg() {
  local key=/usr/share/postgresql-common/pgdg/apt.postgresql.org.asc suite
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  [[ -e $key ]] || die "Debian $suite does not ship PGDG's key; use DEBIAN_SUITE=bookworm or newer, or PACKAGES_FROM=debian"
  "${install[@]}" ca-certificates
  echo "deb [signed-by=$key] https://apt.postgresql.org/pub/repos/apt $suite-pgdg main" \
    >/etc/apt/sources.list.d/pgdg.list
  apt-get update
}

# package_version prints the newest package version of the wanted minor.
package_version() {
  local served version
  served=$(apt-cache madison "postgresql-$PG_MAJOR" | awk '{ print $3 }')
  [[ -n $served ]] || die "$PACKAGES_FROM serves no PostgreSQL $PG_MAJOR for this Debian; choose another PG_MAJOR, DEBIAN_SUITE or PACKAGES_FROM"
  # apt lists the newest first.
  for version in $served; do
    if [[ -z $PG_VERSION || $version == "$PG_VERSION"-* || $version == "$PG_VERSION"+* || $version == "$PG_VERSION"~* ]]; then
      echo "$version"
      return
    fi
  done
  die "PostgreSQL $PG_VERSION is not served for this Debian; served now: ${served//$'\n'/ }"
}

add_locales() {
  local locale aliases=()
  "${install[@]}" locales
  # Suites after trixie have no aliases any more.
  [[ ! -e /usr/share/locale/locale.alias ]] || aliases=(-A /usr/share/locale/locale.alias)
  for locale in en_US.UTF-8 $LOCALES; do
    localedef -i "${locale%%.*}" -c -f "${locale#*.}" "${aliases[@]}" "$locale"
  done
}

# verify_minor guards against a package that carries another release than its name says.
verify_minor() {
  local built
  built=$("/usr/lib/postgresql/$PG_MAJOR/bin/postgres" --version | awk '{ print $3 }')
  if [[ ${built%%.*} != "$PG_MAJOR" || (-n $PG_VERSION && $built != "$PG_VERSION") ]]; then
    die "the installed server is PostgreSQL $built, wanted ${PG_VERSION:-$PG_MAJOR}"
  fi
  echo "install-postgres: PostgreSQL $built"
}

clean_up() {
  apt-get clean
  # A private key in an image is known to all who can pull it.
  rm -f /etc/ssl/private/ssl-cert-snakeoil.key /etc/ssl/certs/ssl-cert-snakeoil.pem
  rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache \
    /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /etc/{passwd,group,shadow,gshadow}-
}

check_arguments
add_user
apt-get update
"${install[@]}" postgresql-common
# The operator makes the database; one made here would be the same in every container.
mkdir -p /etc/postgresql-common
echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
if [[ $PACKAGES_FROM == pgdg ]]; then add_pgdg; fi
version=$(package_version)
# EXTRA is a list: it has to fall apart into words.
# shellcheck disable=SC2086
"${install[@]}" "postgresql-$PG_MAJOR=$version" "postgresql-client-$PG_MAJOR=$version" $EXTRA
add_locales
verify_minor
clean_up
