// The shell script that serves a connection on the other machine, and the marks of its answers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuseline::remote {

/// Every line of the script's own begins with it; other lines are those of the other machine's start files.
inline constexpr std::string_view kMark = "fuseline-remote ";

/// Use of the connection once the bundle is in place. Files: the script takes files, runs the program with the
/// arguments, and sends its standard output and the files under out/. Worker: the connection becomes that of `fuseline
/// worker`.
enum class RemoteMode { Files, Worker };

/// For the login shell of the other machine, whichever it is. version: of the bundle. environment: NAME=value words.
std::string remoteCommand(RemoteMode mode, std::string_view version, const std::vector<std::string>& environment,
                          const std::vector<std::string>& arguments);

}  // namespace fuseline::remote
