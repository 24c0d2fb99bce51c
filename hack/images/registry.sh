# shellcheck shell=bash disable=SC2154,SC2034 # variables are shared with build.sh
# Where images go, and what is there already. Sourced by build.sh.

# registry_find sets registry, registry_scheme and registry_tls_verify.
registry_find() {
  local host
  registry=${IMAGE_REGISTRY:-}
  if [[ -z $registry ]]; then
    [[ -x $root/hack/cluster ]] || die "IMAGE_REGISTRY is not set and hack/cluster is not there; set IMAGE_REGISTRY=HOST[:PORT]"
    registry=$("$root/hack/cluster" registry start | tail -n 1)
    [[ -n $registry ]] || die "'hack/cluster registry start' named no registry"
    : "${IMAGE_REGISTRY_INSECURE:=true}"
  fi
  host=${registry%%[:/]*}
  if [[ -z ${IMAGE_REGISTRY_INSECURE:-} ]]; then
    case $host in localhost | 127.*) IMAGE_REGISTRY_INSECURE=true ;; *) IMAGE_REGISTRY_INSECURE=false ;; esac
  fi
  case $IMAGE_REGISTRY_INSECURE in
    true) registry_scheme=http registry_tls_verify=false ;;
    false) registry_scheme=https registry_tls_verify=true ;;
    *) die "IMAGE_REGISTRY_INSECURE=$IMAGE_REGISTRY_INSECURE is neither true nor false" ;;
  esac
  install_packages curl
}

# registry_name prints the name under which an image is pushed: its own, with the registry's name in place of the first
# part. A cluster whose nodes have the registry as a mirror pulls the image by its own name.
registry_name() { printf '%s/%s' "$registry" "${1#*/}"; }

# registry_get fetches an object of an image's repository. A registry that wants a login answers nothing here; the image
# is then built, and pushed with the engine's credentials.
registry_get() {
  curl --fail --silent --location --max-time 10 \
    --header 'Accept: application/vnd.oci.image.manifest.v1+json' \
    --header 'Accept: application/vnd.docker.distribution.manifest.v2+json' \
    "$registry_scheme://${registry%%/*}/v2/$1" | tr -d ' \n\t'
}

# registry_label NAME LABEL prints the value of a label of an image in the registry, or nothing.
registry_label() {
  local name repository config
  name=$(registry_name "$1")
  name=${name#*/}
  repository=${name%:*}
  config=$(registry_get "$repository/manifests/${name##*:}" |
    sed -n 's/.*"config":{[^}]*"digest":"\(sha256:[0-9a-f]*\)".*/\1/p') || return 0
  [[ -n $config ]] || return 0
  registry_get "$repository/blobs/$config" | sed -n "s|.*\"$2\":\"\([^\"]*\)\".*|\1|p" || return 0
}
