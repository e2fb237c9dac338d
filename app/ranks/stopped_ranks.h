// StoppedRanks: ranks of this machine that a signal has stopped, so that others wait for them in vain.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace fuseline {

/// Children of a process that run or are stopped, not those that have ended.
std::vector<pid_t> runningChildren(pid_t parent);

struct LocalRank {
  int rank = 0;
  int size = 1;
  pid_t process = 0;
};

class StoppedRanks {
 public:
  /// limit: a rank may be stopped for this long.
  StoppedRanks(pid_t parent, std::chrono::milliseconds limit) : m_parent(parent), m_limit(limit) {}

  /// Call it now and then. A child of the parent that is a rank, and that was stopped in every call for the limit.
  std::optional<LocalRank> find();
  /// The lowest rank among the children that is not stopped; -1: there is none.
  int lowestRunning() const;

 private:
  using Clock = std::chrono::steady_clock;

  pid_t m_parent;
  std::chrono::milliseconds m_limit;
  Clock::time_point m_lastCall;
  std::map<pid_t, Clock::time_point> m_since;  // of stopped children
};

/// In a rank: ends this process when another rank of its launcher has been stopped for seconds, also while a library
/// waits for it. One rank names it.
class StoppedRanksWatch {
 public:
  StoppedRanksWatch();

 private:
  std::jthread m_thread;
};

}  // namespace fuseline
