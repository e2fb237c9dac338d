// LaunchPlace: which rank of which job this process is, according to the variables of its launcher.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/socket_exchange.h"
#include "core/support/result.h"

#include <functional>
#include <optional>
#include <string>

namespace fuseline {

enum class RankTransport { InheritedSockets, Sockets, Mpi };

struct LaunchPlace {
  std::string launcher;  // "mpirun", for messages
  RankTransport transport = RankTransport::Mpi;
  int rank = 0;
  int size = 1;
  int localSize = 1;      // ranks of this machine
  std::string sockets;    // descriptors, of InheritedSockets
  SocketMeeting meeting;  // of Sockets

  bool operator==(const LaunchPlace&) const = default;
};

/// Value of a variable; nothing: it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// Nothing: no launcher has started this process, or as the only rank. Errors (Usage): variables of two launchers that
/// contradict each other; a rank that is not below the size.
Result<std::optional<LaunchPlace>> launchPlace(const Environment& environment);

/// Variables of the ranks that supervisor.h starts.
inline constexpr const char* kRankVariable = "FUSELINE_RANK";
inline constexpr const char* kRanksVariable = "FUSELINE_RANKS";
inline constexpr const char* kSocketsVariable = "FUSELINE_RANK_SOCKETS";

}  // namespace fuseline
