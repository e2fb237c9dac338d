// A table of ssh's words: they have stayed the same through twenty years of OpenSSH.
// SPDX-License-Identifier: Apache-2.0
#include "app/remote/ssh_problem.h"

#include <array>

#include <fmt/format.h>

namespace fuseline::remote {

namespace {

struct Known {
  std::string_view words;
  std::string_view sentence;
};

constexpr std::array kConnection = {
    Known{"Could not resolve hostname",
          "no host of this name was found. Check the spelling, or add the host to ~/.ssh/config."},
    Known{"Connection refused",
          "the host refuses the connection. Start its ssh service, or give the port: user@host:port."},
    Known{
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the one in ~/.ssh/known_hosts. If the machine was installed anew, remove the old key with "
        "ssh-keygen -R HOST; otherwise do not connect."},
    Known{"Host key verification failed",
          "its host key is not known yet. Connect once with ssh in a terminal and confirm the key."},
    Known{"Permission denied",
          "it accepts none of your keys or passwords. Try ssh in a terminal, and add your key with "
          "ssh-copy-id."},
    Known{"Too many authentication failures",
          "it accepts none of your keys. Name the right one with IdentityFile in ~/.ssh/config."},
    Known{"timed out", "it does not respond. Check that the machine is on and reachable."},
    Known{"No route to host", "it is unreachable. Check the network or the VPN."},
    Known{"Network is unreachable", "it is unreachable. Check the network or the VPN."},
    Known{"Bad owner or permissions",
          "ssh refuses its own configuration. Correct the permissions of the file it names."},
};

/// The last line that says anything.
std::string_view lastLine(std::string_view words) {
  while (!words.empty() && (words.back() == '\n' || words.back() == '\r' || words.back() == ' '))
    words.remove_suffix(1);
  const std::size_t begin = words.rfind('\n');
  return begin == std::string_view::npos ? words : words.substr(begin + 1);
}

std::string quoted(std::string_view words) {
  const std::string_view line = lastLine(words);
  return line.empty() ? std::string() : fmt::format(" {}{}", line.starts_with("ssh: ") ? "" : "ssh: ", line);
}

}  // namespace

std::string connectionProblem(std::string_view host, std::string_view words) {
  for (const Known& known : kConnection)
    if (words.find(known.words) != std::string_view::npos)
      return fmt::format("{}: {}{}", host, known.sentence, quoted(words));
  return fmt::format(
      "{}: the connection ended before a shell answered. Try ssh {} in a terminal: it needs a Linux login "
      "with sh.{}",
      host, host, quoted(words));
}

std::string writingProblem(std::string_view host, std::string_view words) {
  if (words.find("No space left") != std::string_view::npos || words.find("quota exceeded") != std::string_view::npos)
    return fmt::format(
        "{}: its disk is full. Free space in its cache folder (~/.cache/fuseline) or its temporary folder, "
        "and start again.{}",
        host, quoted(words));
  return fmt::format(
      "{}: a file cannot be written there. Check that its cache folder (~/.cache) and its temporary folder "
      "are writable.{}",
      host, quoted(words));
}

std::string unfitProblem(std::string_view host, std::string_view words) {
  if (const std::size_t at = words.find("GLIBC_"); at != std::string_view::npos)
    return fmt::format(
        "{}: its C library is too old for this program ({}). Build Fuseline there, and pass --worker \"ssh {} fuseline "
        "worker\" to the designer.",
        host, words.substr(at, words.find_first_of("' \n)", at) - at), host);
  return fmt::format("{}: the program was copied but does not start: {}. Install Fuseline there.", host,
                     lastLine(words));
}

}  // namespace fuseline::remote
