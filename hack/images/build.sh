#!/usr/bin/env bash
# Builds the project's images and pushes them to a registry. images/README.md tells which image is for what.
#
#   hack/images/build.sh operator     the operator's image, from build/<arch>/postgres-operator
#   hack/images/build.sh postgres     the PostgreSQL images that the tests run
#   hack/images/build.sh writer       the program that writes rows in tests, from build/<arch>/writer
#   hack/images/build.sh bases        the Debian base images alone
#   hack/images/build.sh all          everything
#   hack/images/build.sh check        start each PostgreSQL image that was built here and query it (buildah only)
#
# An image that is in the registry already, made from the same inputs, is left alone.
#
#   IMAGE_REGISTRY           where to push, HOST[:PORT][/PATH]; default: the local cluster's, which is started if need be
#   IMAGE_REGISTRY_INSECURE  true for a registry without TLS; default: true for the local cluster's and on localhost
#   IMAGE_TOOL               buildah (default), podman or docker
#   BASE_IMAGES              debootstrap: make the Debian images here, for machines that reach no image registry (the
#                            default with buildah); pull: let IMAGE_TOOL fetch them (the default otherwise)
#   OPERATOR_IMAGE           name and tag of the operator's image; default docker.io/my-org/postgres-operator:dev
#   VERSION, REVISION        labels of the operator's image; default dev and none
#   POSTGRES_OPERATOR_CACHE  default ~/.cache/postgres-operator
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${POSTGRES_OPERATOR_CACHE:-$HOME/.cache/postgres-operator}/images
tool=${IMAGE_TOOL:-buildah}
case $tool in buildah) default_bases=debootstrap ;; *) default_bases=pull ;; esac
bases=${BASE_IMAGES:-$default_bases}
versions_file=$root/hack/images/postgres-versions
# The image label that holds the hash of all inputs, by which an image is recognised as up to date.
inputs_label=com.my-domain.db.image-inputs
failed=()

say() { printf '%4ss  %s\n' "$SECONDS" "$*" >&2; }
die() {
  echo "build.sh: $*" >&2
  exit 1
}

usage() {
  sed -n '2,/^set -euo/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
}

. "$root/hack/images/registry.sh"
. "$root/hack/images/engine.sh"

# hash_of prints one hash of its arguments and of the files named after a "--".
hash_of() {
  local words=()
  while (($#)) && [[ $1 != -- ]]; do
    words+=("$1")
    shift
  done
  (($#)) && shift
  { printf '%s\0' "${words[@]}"; (($#)) && sha256sum -- "$@" | cut -d ' ' -f 1; } | sha256sum | cut -d ' ' -f 1
}

# suites prints the Debian suites that the test images are built on, each once.
suites() { awk '!/^#/ && NF == 2 { print $2 }' "$versions_file" | sort -u; }

base_archive() {
  local recipe
  recipe=$(hash_of -- "$root/hack/images/debian-base.sh")
  printf '%s/debian-%s-%.12s.tar' "$cache" "$1" "$recipe"
}

# base_identity prints what identifies the base image of a suite among the inputs of the images that are built on it.
# Archives are hashed when they are made: they are too large to read each time.
base_identity() {
  case $bases in
    debootstrap) cat "$(base_archive "$1").sha256" ;;
    pull) echo "docker.io/library/debian:$1-slim" ;;
    *) die "BASE_IMAGES=$bases is unknown; use debootstrap or pull" ;;
  esac
}

# make_base makes the archive of a suite unless an earlier run has.
make_base() {
  local archive log=$cache/logs/debian-$1.log
  archive=$(base_archive "$1")
  [[ $bases == debootstrap && ! -s $archive.sha256 ]] || return 0
  say "debian:$1-slim: making it with debootstrap"
  if ! "$root/hack/images/debian-base.sh" "$1" "$archive" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "debian:$1-slim could not be made; the whole log is in $log"
  fi
  sha256sum "$archive" | cut -d ' ' -f 1 >"$archive.sha256.partial"
  mv "$archive.sha256.partial" "$archive.sha256"
  say "debian:$1-slim: made"
}

# load_base brings the base image of a suite into the engine's storage.
load_base() {
  [[ $bases == debootstrap ]] || return 0
  local identity
  identity=$(base_identity "$1")
  engine_has "docker.io/library/debian:$1-slim" "$identity" || engine_import "docker.io/library/debian:$1-slim" "$identity" "$(base_archive "$1")"
}

# ensure_image NAME INPUTS BEFORE BUILD-ARGUMENT... sees to it that the registry has the image, made from these inputs.
# BEFORE is a command that prepares a build. A failure is remembered, and the other images are still built.
ensure_image() {
  local name=$1 inputs=$2 before=$3 log
  shift 3
  if [[ $(registry_label "$name" "$inputs_label") == "$inputs" ]]; then
    say "$name: up to date"
    return
  fi
  engine_configure
  log=$cache/logs/$(basename "${name/:/-}").log
  if ! engine_has "$name" "$inputs"; then
    say "$name: building"
    $before
    if ! engine_build "$name" "$inputs" "$@" >"$log" 2>&1; then
      tail -n 20 "$log" >&2
      say "$name: FAILED; the whole log is in $log"
      failed+=("$name")
      return
    fi
  fi
  engine_push "$name" "$(registry_name "$name")" >"$log.push" 2>&1 || {
    tail -n 20 "$log.push" >&2
    say "$name: could not be pushed to $(registry_name "$name")"
    failed+=("$name")
    return
  }
  say "$name: pushed to $(registry_name "$name")"
}

# in_parallel COMMAND ARGUMENT... runs the command once per argument, all at once, and remembers which failed.
in_parallel() {
  local command=$1 argument pid
  local -A jobs=()
  shift
  for argument; do
    (
      "$command" "$argument"
      ((${#failed[@]} == 0))
    ) &
    jobs[$!]=$argument
  done
  for pid in "${!jobs[@]}"; do
    wait "$pid" || failed+=("${jobs[$pid]}")
  done
}

# lock keeps two runs from building the same images at once. It is held until this program ends.
lock() {
  exec 9>"$cache/$1.lock"
  flock --nonblock 9 || {
    say "waiting for another build of the $1 images to end"
    flock 9
  }
}

build_bases() {
  [[ $bases == debootstrap ]] || return 0
  lock postgres
  install_packages debootstrap
  # shellcheck disable=SC2046 # names of suites are words
  in_parallel make_base $(suites)
}

build_postgres() {
  lock postgres
  [[ $bases != debootstrap ]] || install_packages debootstrap
  # A download in one suite leaves the processor to another.
  # shellcheck disable=SC2046 # names of suites are words
  in_parallel build_suite $(suites)
  in_parallel build_layout rhel alpine
}

# build_suite builds the PostgreSQL images of one Debian suite.
build_suite() {
  local version context=$root/images/postgres
  make_base "$1"
  # shellcheck disable=SC2013 # versions are words
  for version in $(awk -v suite="$1" '!/^#/ && $2 == suite { print $1 }' "$versions_file"); do
    ensure_image "docker.io/library/postgres:$version" \
      "$(hash_of "$version" "$(base_identity "$1")" -- "$context/Dockerfile" "$context/install.sh")" "load_base $1" \
      --build-arg "DEBIAN_SUITE=$1" --build-arg "PG_MAJOR=${version%%.*}" --build-arg "PG_VERSION=$version" \
      --build-arg PACKAGES_FROM=debian "$context"
  done
}

# build_layout builds an image whose server lives elsewhere, from the one of the suite trixie.
build_layout() {
  local version name context=$root/images/postgres-$1-layout
  version=$(awk '$2 == "trixie" { print $1 }' "$versions_file")
  name=docker.io/test/postgres-$1-layout:$version
  ensure_image "$name" "$(hash_of "$version" "$(base_identity trixie)" -- "$context/Dockerfile" "$root"/images/postgres/*)" \
    "need_local docker.io/library/postgres:$version" \
    --build-arg "BASE=docker.io/library/postgres:$version" "$context"
}

# need_local fetches an image that this project built earlier from the registry if the engine has forgotten it.
need_local() { engine_exists "$1" || engine_pull "$(registry_name "$1")" "$1"; }

# check_postgres proves that the servers run, from where the tests expect them.
check_postgres() {
  local version
  [[ $tool == buildah ]] || die "check works with IMAGE_TOOL=buildah only"
  engine_configure
  while read -r version _; do
    [[ -z $version || $version == \#* ]] || check_image "docker.io/library/postgres:$version" "/usr/lib/postgresql/${version%%.*}/bin"
  done <"$versions_file"
  version=$(awk '$2 == "trixie" { print $1 }' "$versions_file")
  check_image "docker.io/test/postgres-rhel-layout:$version" "/usr/pgsql-${version%%.*}/bin"
  check_image "docker.io/test/postgres-alpine-layout:$version" /usr/local/bin
}

check_image() {
  local log=$cache/logs/check.log
  if "$root/hack/images/smoke.sh" "$1" "$2" </dev/null >"$log" 2>&1; then
    say "$1: $(tail -n 1 "$log" | cut -d ' ' -f 1-2) answers from $2"
  else
    tail -n 20 "$log" >&2
    failed+=("$1")
  fi
}

# build_program IMAGE DOCKERFILE PROGRAM MAKE-TARGET BUILD-ARGUMENT... builds an image that holds one program of ours.
build_program() {
  local name=$1 dockerfile=$2 arch binary make_target=$4
  arch=$(go env GOARCH)
  binary=$root/build/$arch/$3
  lock "$3"
  shift 4
  [[ -x $binary ]] || die "build/$arch/$(basename "$binary") does not exist; run 'make $make_target' first"
  ensure_image "$name" "$(hash_of "$arch" "$@" -- "$root/$dockerfile" "$binary")" true \
    --build-arg "TARGETARCH=$arch" "$@" --file "$root/$dockerfile" "$root"
}

build_operator() {
  build_program "${OPERATOR_IMAGE:-docker.io/my-org/postgres-operator:dev}" Dockerfile postgres-operator build \
    --build-arg "VERSION=${VERSION:-dev}" --build-arg "REVISION=${REVISION:-}"
}

build_writer() { build_program docker.io/test/writer:dev images/writer/Dockerfile writer test-images; }

main() {
  case ${1:-} in
    operator | postgres | writer | bases | all | check) ;;
    -h | --help | help) usage && return ;;
    *) usage >&2 && exit 2 ;;
  esac
  mkdir -p "$cache/logs"
  case $1 in operator | postgres | writer | all) registry_find ;; esac
  engine_start
  case $1 in
    operator) build_operator ;;
    postgres) build_postgres ;;
    writer) build_writer ;;
    bases) build_bases ;;
    check) check_postgres ;;
    all)
      build_postgres
      build_operator
      build_writer
      ;;
  esac
  ((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
}

main "$@"
