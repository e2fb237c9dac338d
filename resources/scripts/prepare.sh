# What app/run and tests/run share: install missing packages, configure and build a preset, one line a stage.
# SPDX-License-Identifier: Apache-2.0
# Sourced by bash. Everything said here goes to standard error: standard output belongs to the program that is run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Debian and Ubuntu packages; a|b: the first one that the system knows. A stage asks for the lists that it needs.
packages_build=(cmake ninja-build g++ pkg-config libfmt-dev nlohmann-json3-dev libcli11-dev libdtl-dev libdnnl-dev
  ocl-icd-opencl-dev libhwy-dev libonnx-dev libprotobuf-dev libmimalloc-dev libgraphviz-dev
  "qt6-svg-dev|libqt6svg6-dev" qt6-base-dev libgl1-mesa-dev libopengl-dev)
# package:version: the oldest that the sources compile with. Debian 12 and Ubuntu 24.04 have them.
oldest_versions=(cmake:3.22 libhwy-dev:1.0 qt6-base-dev:6.4)
packages_tests=(libgtest-dev librapidcheck-dev libbenchmark-dev python3 libopenmpi-dev openmpi-bin)
packages_checks=("clang-format-14|clang-format")

say() { printf '%s\n' "$*" >&2; }

# fail STATUS SENTENCE...: one paragraph and out.
fail() {
  local status=$1
  shift
  say "$@"
  exit "$status"
}

isInstalled() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

isAvailable() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

# chooseAlternative a|b: the installed one, else the available one, else nothing.
chooseAlternative() {
  local names name
  IFS='|' read -ra names <<<"$1"
  for name in "${names[@]}"; do isInstalled "$name" && echo "$name" && return; done
  for name in "${names[@]}"; do isAvailable "$name" && echo "$name" && return; done
  return 0
}

# missingPackages ENTRY...: the entries of which no alternative is installed.
missingPackages() {
  local entry name names
  for entry in "$@"; do
    IFS='|' read -ra names <<<"$entry"
    for name in "${names[@]}"; do isInstalled "$name" && continue 2; done
    echo "$entry"
  done
}

# asRoot: the words to put before a command that needs root; fails where there is no way without a person.
asRoot() {
  if [ "$(id -u)" = 0 ]; then return 0; fi
  command -v sudo >/dev/null || return 1
  if sudo -n true >/dev/null 2>&1; then echo "sudo -n"; return 0; fi
  if [ -t 0 ] && [ -t 2 ]; then echo sudo; return 0; fi
  return 1
}

# resolvePackages ENTRY...: fills resolved with names to install and unknown with entries that no source offers.
resolvePackages() {
  local entry name
  resolved=() unknown=()
  for entry in "$@"; do
    name=$(chooseAlternative "$entry")
    if [ -n "$name" ]; then resolved+=("$name"); else unknown+=("${entry%%|*}"); fi
  done
}

refuseUnknown() {
  local where="the package sources of this system (see /etc/apt)"
  if grep -qs '^ID=ubuntu' /etc/os-release; then
    where="this system's package sources; most are in Ubuntu's universe, which this line adds:
  sudo apt-get install -y software-properties-common && sudo add-apt-repository -y universe"
  fi
  fail 2 "Not found: ${unknown[*]}. Expected in $where
Fuseline needs Debian 12, Ubuntu 24.04, or something newer."
}

# refuseOldPackages: one sentence instead of a page of compiler messages.
refuseOldPackages() {
  local entry name needed found
  for entry in "${oldest_versions[@]}"; do
    name=${entry%%:*} needed=${entry##*:}
    found=$(dpkg-query -W -f '${Version}' "$name")
    if dpkg --compare-versions "$found" lt "$needed"; then
      fail 2 "$name: found version $found, expected $needed or newer. Fuseline needs Debian 12, Ubuntu 24.04, or something newer."
    fi
  done
}

installPackages() {
  local sudo prefix='' apt='apt-get -o DPkg::Lock::Timeout=300'
  if command -v sudo >/dev/null; then prefix='sudo '; fi
  resolvePackages "$@"
  if ! sudo=$(asRoot); then
    fail 2 "${#@} packages are missing. Type this line as root, then start this again:
  ${prefix}apt-get update && ${prefix}apt-get install -y --no-install-recommends ${resolved[*]} ${unknown[*]}"
  fi
  if [ "$sudo" = sudo ]; then say "Installing ${#@} packages; sudo may ask for your password." && sudo -v; fi
  # A fresh image knows no package at all until the first update.
  stage "Update the package lists" $sudo $apt update || say "Going on with the lists that are there."
  resolvePackages "$@"
  [ ${#unknown[@]} = 0 ] || refuseUnknown
  stage "Install ${#resolved[@]} packages" $sudo env DEBIAN_FRONTEND=noninteractive $apt install -y --no-install-recommends \
    "${resolved[@]}"
}

# ensurePackages ENTRY...: asks dpkg only when the list or the installed packages changed since the last time.
ensurePackages() {
  local stamp missing status=/var/lib/dpkg/status
  stamp=$root/build/.packages-$(printf '%s\n' "$@" | cksum | cut -d' ' -f1)
  if [ "$stamp" -nt "$status" ]; then return; fi
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "This is neither Debian nor Ubuntu: what CMake asks for must be there. The names on Debian: $*"
    return
  fi
  mapfile -t missing < <(missingPackages "$@")
  if [ ${#missing[@]} != 0 ]; then installPackages "${missing[@]}"; fi
  refuseOldPackages
  mkdir -p "$root/build"
  touch "$stamp"
}

# stage TITLE COMMAND...: runs a command into a log. Says one line, and the end of the log when the command fails.
stage() {
  local title=$1 log begin=$SECONDS status=0 reporter=
  shift
  mkdir -p "$root/build/logs"
  log=$root/build/logs/$(tr -cs 'a-zA-Z0-9\n' - <<<"${title:0:40}").log
  printf '%s ... ' "$title" >&2
  : >"$log"
  if [ -t 2 ]; then reportProgress "$title" "$log" & reporter=$!; fi
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ -n "$reporter" ]; then
    kill "$reporter" 2>/dev/null || true
    wait "$reporter" 2>/dev/null || true
    printf '\r\033[K%s ... ' "$title" >&2
  fi
  if [ "$status" != 0 ]; then
    say "failed after $((SECONDS - begin)) s. The end of $log:"
    tail -n 40 "$log" >&2
    return 1
  fi
  closeLine $((SECONDS - begin)) "$(grep -c ' warning: ' "$log" || true)" "$log"
}

# reportProgress TITLE LOG: once a second, while this script runs.
reportProgress() {
  local begin=$SECONDS
  while sleep 1 && kill -0 $$ 2>/dev/null; do
    printf '\r\033[K%s ... %s' "$1" "$(progressText "$2" $((SECONDS - begin)))" >&2
  done
}

# progressText LOG SECONDS: "37 of 147 files, about 4 min left", from ninja's last "[37/147]"; nothing before the first.
progressText() {
  local numDone=0 total=0
  IFS='[/]' read -r _ numDone total _ < <(grep -aoE '^\[[0-9]+/[0-9]+\]' "$1" | tail -n 1) || true
  if [ "${numDone:-0}" = 0 ]; then return; fi
  echo "$numDone of $total files, about $(((total - numDone) * $2 / numDone / 60 + 1)) min left"
}

# closeLine SECONDS NUM_WARNINGS LOG: on a terminal a stage that had nothing to do leaves no line behind.
closeLine() {
  if [ "$2" != 0 ]; then
    say "done in $1 s with $2 warnings, see $3"
  elif [ "$1" -lt 2 ] && [ -t 2 ]; then
    printf '\r\033[K' >&2
  else
    say "done in $1 s"
  fi
}

# limitOf FILE: a number from a cgroup file; nothing where there is no limit.
limitOf() { grep -Eos '^[0-9]+' "$1" || true; }

# numJobs: one a core, as far as the memory goes. A heavy translation unit (Qt, JSON, Highway) takes up to 1.5 GB.
numJobs() {
  local cores memoryMb limit quota period
  cores=$(nproc)
  if read -r quota period 2>/dev/null </sys/fs/cgroup/cpu.max && [ "$quota" != max ]; then
    limit=$(((quota + period - 1) / period))
    if [ "$limit" -lt "$cores" ]; then cores=$limit; fi
  fi
  memoryMb=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
  limit=$(limitOf /sys/fs/cgroup/memory.max)
  if [ -n "$limit" ] && [ $((limit / 1048576)) -lt "$memoryMb" ]; then memoryMb=$((limit / 1048576)); fi
  limit=$((memoryMb / 1500))
  if [ "$limit" -lt "$cores" ]; then cores=$limit; fi
  echo $((cores > 0 ? cores : 1))
}

# configurePreset PRESET: only when there is no build tree yet, or the presets or the packages changed; ninja sees the rest.
configurePreset() {
  local preset=$1 tree=$root/build/$1
  if [ "$tree/build.ninja" -nt "$root/CMakePresets.json" ]; then return; fi
  (cd "$root" && stage "Configure $preset" cmake --preset "$preset") || return 1
  touch "$tree/build.ninja"
}

# buildPreset PRESET [TARGET...]
buildPreset() {
  local preset=$1 targets=()
  shift
  if [ $# != 0 ]; then targets=(--target "$@"); fi
  configurePreset "$preset" || return 1
  (cd "$root" && stage "Build $preset" cmake --build --preset "$preset" --parallel "$(numJobs)" "${targets[@]}")
}
