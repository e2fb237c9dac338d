// The protocol of the script, on its standard streams:
//   < fuseline-remote machine yes|no SYSTEM ARCHITECTURE      yes: the bundle is there
//   > send, and files, where it is not                        a file: "BYTES NAME\n" and the bytes; an empty line ends
//   < fuseline-remote failed                                  a file could not be written; the reason is on stderr
//   < fuseline-remote unfit WORDS                             the program does not start there
//   < fuseline-remote ready
// and with RemoteMode::Files
//   > files                                                   then the input stays open; its end cancels the program
//   < fuseline-remote exit CODE
//   < fuseline-remote file BYTES NAME                         and the bytes
//   < fuseline-remote end
// SPDX-License-Identifier: Apache-2.0
#include "app/remote/remote_script.h"

#include "core/profile/run_command.h"

namespace fuseline::remote {

namespace {

// No script has quotes of the other kind, line breaks or exclamation marks: login shells differ in them.
constexpr std::string_view kFunctions =
    R"sh(say() { echo "fuseline-remote $*"; }; )sh"
    R"sh(take() { while read -r n f; do [ -n "$f" ] || return 0; mkdir -p "$(dirname "$f")" && head -c "$n" >"$f" && )sh"
    R"sh([ "$(wc -c <"$f")" -eq "$n" ] || return 1; done; return 1; }; )sh";

// Bundles that were not used for a month are those of versions that nobody has any more.
constexpr std::string_view kInstall =
    R"sh(version=$1; shift; c=${XDG_CACHE_HOME:-$HOME/.cache}/fuseline/workers; d=$c/$version; )sh"
    R"sh(if [ -x "$d/bin/fuseline" ]; then touch "$d"; say machine yes $(uname -s) $(uname -m); )sh"
    R"sh(else say machine no $(uname -s) $(uname -m); read -r go; [ "$go" = send ] || exit 0; p=$d.part.$$; )sh"
    R"sh(if rm -rf "$p" && mkdir -p "$p" && cd "$p" && take && chmod u+x bin/fuseline; then :; )sh"
    R"sh(else cd /; rm -rf "$p"; say failed; exit 9; fi; )sh"
    R"sh(if w=$(LD_LIBRARY_PATH=$p/lib "$p/bin/fuseline" --version 2>&1); then :; )sh"
    R"sh(else cd /; rm -rf "$p"; say unfit $w; exit 9; fi; cd /; )sh"
    R"sh(if [ -e "$d" ]; then rm -rf "$p"; else mv "$p" "$d"; fi; )sh"
    R"sh(find "$c" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +; fi; )sh";

constexpr std::string_view kScratch =
    R"sh(s=$(mktemp -d "${TMPDIR:-/tmp}/fuseline.XXXXXX") && cd "$s" || { say failed; exit 9; }; )sh"
    R"sh(trap "cd /; rm -rf $s" EXIT; trap "exit 1" HUP INT TERM; )sh"
    R"sh(until [ "x$1" = x-- ]; do export "$1"; shift; done; shift; )sh"
    R"sh(export LD_LIBRARY_PATH="$d/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; say ready; )sh";

// The end of the input cancels the program: it is all that tells of a lost connection.
constexpr std::string_view kFiles =
    R"sh(if take && mkdir -p out; then :; else say failed; exit 9; fi; exec 3<&0; )sh"
    R"sh("$d/bin/fuseline" "$@" >out/stdout </dev/null & q=$!; )sh"
    R"sh({ cat; kill -TERM $q; } <&3 >/dev/null 2>&1 & k=$!; wait $q; r=$?; kill $k 2>/dev/null; say exit $r; )sh"
    R"sh(find out -type f | while read -r f; do say file $(wc -c <"$f") "$f"; cat "$f"; done; say end)sh";

constexpr std::string_view kWorker = R"sh("$d/bin/fuseline" "$@")sh";

}  // namespace

std::string remoteCommand(RemoteMode mode, std::string_view version, const std::vector<std::string>& environment,
                          const std::vector<std::string>& arguments) {
  std::string script(kFunctions);
  script.append(kInstall).append(kScratch).append(mode == RemoteMode::Files ? kFiles : kWorker);
  std::string command = "exec sh -c " + shellWord(script) + " fuseline";
  const auto add = [&](std::string_view word) { command.append(" ").append(shellWord(word)); };
  add(version);
  for (const std::string& each : environment) add(each);
  add("--");
  for (const std::string& each : arguments) add(each);
  return command;
}

}  // namespace fuseline::remote
