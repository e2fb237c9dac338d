// The name of another machine, as ssh takes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace fuseline::remote {

/// "gpu-box" of ssh_config, or user@host, user@host:port, [2001:db8::1]:port.
struct SshHost {
  std::string text;         // as it was given, for messages
  std::string destination;  // user@host
  std::string port;         // empty: that of ssh's configuration

  /// Options and the destination; a command follows. Nothing in a host's name can become an option.
  std::vector<std::string> sshArguments() const;
};

/// Errors (Usage): a name that ssh or a shell could take for something else.
Result<SshHost> parseSshHost(std::string_view text);

}  // namespace fuseline::remote
