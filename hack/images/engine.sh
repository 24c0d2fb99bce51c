# shellcheck shell=bash disable=SC2154,SC2034 # variables are shared with build.sh
# The program that builds images: buildah, podman or docker. Sourced by build.sh.

# install_packages installs Debian packages whose programs, named like them, are missing.
install_packages() {
  local package missing=()
  for package; do
    [[ -x $(command -v "$package") ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  "$root/hack/tools/apt.sh" "${missing[@]}" >&2 9>&-
}

# engine_start makes sure that the engine is there.
engine_start() {
  case $tool in
    buildah) install_packages buildah ;;
    podman | docker) [[ -x $(command -v "$tool") ]] || die "IMAGE_TOOL=$tool is not installed" ;;
    *) die "IMAGE_TOOL=$tool is unknown; use buildah, podman or docker" ;;
  esac
}

# engine_configure is called before the engine's first use, and no sooner: a run that builds nothing saves the time.
engine_configure() {
  [[ $tool == buildah ]] || return 0
  # chroot works where the kernel grants no new namespaces, as in many virtual machines and containers.
  export BUILDAH_ISOLATION=chroot
  [[ -z ${STORAGE_DRIVER:-} ]] || return 0
  export STORAGE_DRIVER=overlay
  # vfs copies whole images, but needs nothing from the kernel.
  buildah info >/dev/null 2>&1 || export STORAGE_DRIVER=vfs
}

# engine_label prints the inputs label of an image in the engine's own storage, or nothing.
engine_label() {
  case $tool in
    buildah) "$tool" inspect --type image --format "{{index .OCIv1.Config.Labels \"$inputs_label\"}}" "$1" 2>/dev/null ;;
    *) "$tool" image inspect --format "{{index .Config.Labels \"$inputs_label\"}}" "$1" 2>/dev/null ;;
  esac || true
}

engine_has() { [[ $(engine_label "$1") == "$2" ]]; }

engine_exists() { "$tool" inspect --type image "$1" >/dev/null 2>&1; }

# engine_import NAME INPUTS ARCHIVE makes an image of a root file system.
engine_import() {
  local context log
  log=$cache/logs/import-${1##*:}.log
  say "$1: importing"
  context=$(mktemp -d --tmpdir image-import.XXXXXX)
  ln "$3" "$context/root.tar" 2>/dev/null || cp "$3" "$context/root.tar"
  printf 'FROM scratch\nADD root.tar /\nCMD ["bash"]\n' >"$context/Dockerfile"
  if ! engine_build "$1" "$2" "$context" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -rf "$context"
    die "$1 could not be imported from $3"
  fi
  rm -rf "$context"
}

# engine_build NAME INPUTS ARGUMENT... builds an image; the last argument is the context.
engine_build() {
  local name=$1 inputs=$2 arguments=() old
  shift 2
  # The build reaches what the machine reaches, mirrors on its own addresses included.
  arguments=(--network host --tag "$name" --label "$inputs_label=$inputs")
  case $tool in
    docker) "$tool" build "${arguments[@]}" "$@" ;;
    *)
      # Base images made here must not be looked for elsewhere. One layer for all steps, with fixed times: the same
      # inputs of ours give the same image.
      [[ $bases == debootstrap ]] && arguments+=(--pull=never)
      old=$(engine_id "$name")
      "$tool" build --layers=false --timestamp 0 "${arguments[@]}" "$@" || return
      # The image that lost its name to the new one would stay for ever.
      [[ -z $old || $old == "$(engine_id "$name")" ]] || "$tool" rmi "$old" || true
      ;;
  esac
}

engine_id() { "$tool" images --quiet --no-trunc "$1" 2>/dev/null | head -n 1 || true; }

# engine_push NAME TARGET
engine_push() {
  case $tool in
    docker) "$tool" tag "$1" "$2" && "$tool" push "$2" ;;
    *) "$tool" push --tls-verify="$registry_tls_verify" "$1" "docker://$2" ;;
  esac
}

# engine_pull SOURCE NAME
engine_pull() {
  case $tool in
    docker) "$tool" pull "$1" && "$tool" tag "$1" "$2" ;;
    *) "$tool" pull --tls-verify="$registry_tls_verify" "docker://$1" && "$tool" tag "$1" "$2" ;;
  esac >&2
}
