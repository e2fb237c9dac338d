// Splits off the port, and refuses all characters that names of hosts and users never have.
// SPDX-License-Identifier: Apache-2.0
#include "app/remote/ssh_host.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace fuseline::remote {

namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+%:\\";

Error refusal(std::string_view text, std::string_view reason) {
  return {fmt::format("--on {}: {} Expected a host of ~/.ssh/config, or user@host, or user@host:port.", text, reason),
          ErrorKind::Usage};
}

bool isName(std::string_view name) {
  return !name.empty() && name.front() != '-' && name.find_first_not_of(kNameCharacters) == std::string_view::npos;
}

bool isPort(std::string_view text) {
  int port = 0;
  const bool isNumber = !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
  return isNumber && std::from_chars(text.data(), text.data() + text.size(), port).ec == std::errc() && port > 0 &&
         port <= 65535;
}

struct HostAndPort {
  std::string_view host;
  std::string_view port;
  bool hasPort = false;
};

/// An IPv6 address has colons of its own: its port follows brackets.
HostAndPort split(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {text, {}, false};
    const std::string_view rest = text.substr(end + 1);
    if (rest.empty()) return {text.substr(1, end - 1), {}, false};
    return {text.substr(1, end - 1), rest.substr(1), true};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) return {text, {}, false};
  return {text.substr(0, colon), text.substr(colon + 1), true};
}

}  // namespace

Result<SshHost> parseSshHost(std::string_view text) {
  const std::size_t at = text.rfind('@');
  const std::string_view user = at == std::string_view::npos ? std::string_view() : text.substr(0, at);
  const HostAndPort parts = split(at == std::string_view::npos ? text : text.substr(at + 1));
  if (text.starts_with('-')) return refusal(text, "a host's name cannot begin with \"-\".");
  if (at != std::string_view::npos && !isName(user)) return refusal(text, "the user's name is not valid.");
  if (!isName(parts.host)) return refusal(text, "the host's name is not valid.");
  if (parts.hasPort && !isPort(parts.port)) return refusal(text, "the port is not a number from 1 to 65535.");
  SshHost host{.text = std::string(text), .port = std::string(parts.port)};
  host.destination = user.empty() ? std::string(parts.host) : fmt::format("{}@{}", user, parts.host);
  return host;
}

std::vector<std::string> SshHost::sshArguments() const {
  std::vector<std::string> arguments = {"-T"};
  for (const char* option :
       {"RequestTTY=no", "RemoteCommand=none", "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no",
        "Compression=yes", "ConnectTimeout=20", "ServerAliveInterval=15", "ServerAliveCountMax=4"})
    arguments.insert(arguments.end(), {"-o", option});
  if (!port.empty()) arguments.insert(arguments.end(), {"-p", port});
  arguments.insert(arguments.end(), {"--", destination});
  return arguments;
}

}  // namespace fuseline::remote
