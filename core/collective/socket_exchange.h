// An Exchange over sockets: for processes of one machine, and for launchers without a message-passing library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/exchange.h"
#include "core/support/result.h"

#include <memory>
#include <string>
#include <vector>

namespace fuseline {

/// Where the ranks of a job meet that come from several programs.
struct SocketMeeting {
  std::string host;
  /// Rank 0 listens on the first free one of these ports and the 15 after it.
  int firstPort = 0;
  /// Ranks of another job are sent away.
  std::string token;

  bool operator==(const SocketMeeting&) const = default;
};

/// Each rank has one connection to rank 0, which passes on the bytes of the others. sockets: of rank 0 those to the
/// ranks from 1 on, of another rank the one to rank 0; they are closed at the end. Errors (RunFailed): a rank that ends
/// or does not answer.
Result<std::shared_ptr<Exchange>> makeSocketExchange(int rank, int size, std::vector<int> sockets, Patience patience);

/// Errors (RunFailed): nobody answers, with the address.
Result<std::shared_ptr<Exchange>> meetBySockets(int rank, int size, const SocketMeeting& meeting, Patience patience);

}  // namespace fuseline
