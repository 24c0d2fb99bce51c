#!/usr/bin/env bash
# Builds pinned tools from source, once per version, into a cache outside the tree.
#
#   hack/tools/build.sh NAME...    build what is missing and link it into $POSTGRES_OPERATOR_CACHE/bin
#   hack/tools/build.sh list       the tools and their versions
#
# Each tool has a module of its own, hack/tools/NAME/go.mod, since their dependencies disagree. Its `tool` lines say
# which programs are built; the file `build` beside it, if there is one, sets tags, cgo, ldflags and packages (apt).
# A tool is built again when any file of its folder changes.
set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${POSTGRES_OPERATOR_CACHE:-$HOME/.cache/postgres-operator}

say() { printf '%4ss  %s\n' "$SECONDS" "$*" >&2; }

# still says every half minute that something goes on, for as long as this script does.
still() {
  exec 9>&- # the lock is not its own
  trap 'kill "$sleeper" 2>/dev/null; exit' TERM
  while sleep 30 & sleeper=$!; wait "$sleeper"; kill -0 "$$" 2>/dev/null; do say "still $*"; done
}

# programs prints the import paths of a tool's programs.
programs() { (cd "$tools/$1" && go mod edit -json) | sed -n '/"Tool"/,/]/s/.*"Path": "\(.*\)".*/\1/p'; }

# program_name prints the name of a program: the last part of its path, or the one before a version.
program_name() {
  local name=${1##*/}
  if [[ $name =~ ^v[0-9]+$ ]]; then name=${1%/*}; name=${name##*/}; fi
  printf '%s' "$name"
}

# home_of prints the folder of a tool's programs; its name depends on all that they are made from.
home_of() {
  local hash
  hash=$(cd "$tools/$1" && { echo "$go_version"; cat go.mod go.sum; if [[ -f build ]]; then cat build; fi; } | sha256sum)
  printf '%s/tools/%s/%s' "$cache" "$1" "${hash:0:16}"
}

build() {
  local tool=$1 home program path started=$SECONDS
  local tags='' cgo=0 ldflags='' packages='' main_name=''
  [[ -f $tools/$tool/build ]] && . "$tools/$tool/build"
  home=$(home_of "$tool")
  mkdir -p "$cache/bin"
  if [[ ! -f $home/complete ]]; then
    say "building $tool ($2 of $3)"
    # shellcheck disable=SC2086 # a list of packages
    [[ -z $packages ]] || "$tools/apt.sh" $packages
    mkdir -p "$home"
    for path in $(programs "$tool"); do
      program=${main_name:-$(program_name "$path")}
      still "building $program" &
      beat=$!
      trap 'kill "$beat" 2>/dev/null || true' EXIT
      (cd "$tools/$tool" && CGO_ENABLED=$cgo GOFLAGS=-mod=readonly nice go build -trimpath -tags "$tags" \
        -ldflags "-s -w $ldflags" -o "$home/$program.new" "$path") 2> >(grep -v '^go: downloading' >&2)
      kill "$beat" 2>/dev/null || true
      trap - EXIT
      mv "$home/$program.new" "$home/$program"
      say "built $program"
    done
    touch "$home/complete"
    say "$tool took $((SECONDS - started)) s"
  fi
  for program in "$home"/*; do
    [[ $program == */complete ]] || [[ $(readlink "$cache/bin/${program##*/}" || true) == "$program" ]] ||
      ln -sfn "$program" "$cache/bin/${program##*/}"
  done
}

if [[ ${1:-} == list ]]; then
  for module in "$tools"/*/go.mod; do
    tool=$(basename "$(dirname "$module")")
    for path in $(programs "$tool"); do printf '%-20s %s\n' "$tool" "$(program_name "$path")"; done
  done
  exit 0
fi
(($#)) || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 2; }

go_version=$(go env GOVERSION)
for tool in "$@"; do
  [[ -f $tools/$tool/go.mod ]] || { echo "build.sh: no such tool: $tool (see build.sh list)" >&2; exit 2; }
  if [[ ! -f $(home_of "$tool")/complete ]]; then missing=1; fi
done
if [[ -n ${missing:-} ]]; then # two builds at once would only be slower; who needs no build need not wait for another's
  mkdir -p "$cache"
  exec 9>"$cache/build.lock"
  flock 9
fi
number=0
for tool in "$@"; do build "$tool" $((number += 1)) $#; done
