// StoppedRanks: ranks of this machine that a signal has stopped, so that others wait for them in vain.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/ranks/launch_place.h"

#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace fuseline {

/// Children of a process that run or are stopped, not those that have ended.
std::vector<pid_t> runningChildren(pid_t parent);

struct LocalRank {
  LaunchPlace place;
  pid_t process = 0;
};

class StoppedRanks {
 public:
  using Clock = std::chrono::steady_clock;

  /// limit: a rank may be stopped for this long. job: the place of one of its ranks.
  StoppedRanks(pid_t parent, std::chrono::milliseconds limit, LaunchPlace job)
      : m_parent(parent), m_limit(limit), m_job(std::move(job)) {}

  /// Call it now and then. A child of the parent that is a rank of the job, and that was stopped in every call for the
  /// limit.
  std::optional<LocalRank> find(Clock::time_point now = Clock::now());
  /// The lowest rank of the job that is not stopped; -1: there is none.
  int lowestRunning() const;

 private:
  std::optional<LocalRank> rankOfJob(pid_t process) const;

  pid_t m_parent;
  std::chrono::milliseconds m_limit;
  LaunchPlace m_job;
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
