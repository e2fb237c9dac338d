#!/usr/bin/env bash
# What a stage of app/run says of a build while it runs, and of commands that fail.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../resources/scripts/prepare.sh"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# expect WHAT FOUND EXPECTED
expect() { [ "$2" = "$3" ] || fail 1 "$1: found \"$2\", expected \"$3\"."; }

log=$root/build.log
echo "[0/2] Re-checking globbed directories..." >"$log"
expect "before the first file" "$(progressText "$log" 5)" ""
printf '[36/147] Building a\n[37/147] Building b\n' >>"$log"
expect "37 of 147 files after a minute" "$(progressText "$log" 60)" "37 of 147 files, about 3 min left"
expect "the last file" "$(progressText <(echo '[147/147] Linking') 600)" "147 of 147 files, about 1 min left"

breaks() { echo "what went wrong" && return 3; }
if found=$(stage "Break" breaks 2>&1); then fail 1 "A stage whose command fails: found success, expected failure."; fi
expect "the end of the log" "${found##*$'\n'}" "what went wrong"
found=$(stage "Work" true 2>&1)
expect "a stage that works" "$found" "Work ... done in 0 s"
