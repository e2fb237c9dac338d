// RankJob: this process as one rank of a job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/ranks/launch_place.h"
#include "app/ranks/stopped_ranks.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace fuseline {

/// A fact that all ranks must have in common, and the next step where they do not. A value of several lines is compared
/// line by line.
struct JobFact {
  std::string name;
  std::string value;
  std::string advice;
};

class RankJob {
 public:
  /// Errors: the ranks do not meet (RunFailed); there is no MPI (NoDevice).
  static Result<std::unique_ptr<RankJob>> join(const LaunchPlace& place, std::optional<Seconds> rankTimeout);

  int rank() const { return m_place.rank; }
  int size() const { return m_place.size; }
  int ranksOfMachine() const { return m_place.localSize; }
  /// Rank 0 prints and writes files.
  bool speaks() const { return m_place.rank == 0; }
  const std::shared_ptr<Communicator>& communicator() const { return m_communicator; }

  /// Call it once on all ranks, before the first collective. Errors: the same on all ranks: programs of two versions,
  /// what one of them could not prepare, or a fact that they do not share.
  Result<void> agree(const Result<void>& prepared, const std::vector<JobFact>& facts);

  /// All ranks have agreed to end the run, so none of them has failed.
  void noteCancelled() { m_isCancelled = true; }

  /// The exit code. One rank prints what went wrong, and the others wait until it has.
  int leave(const Result<int>& code, std::ostream& err);

 private:
  RankJob(std::unique_ptr<StoppedRanksWatch> watch, LaunchPlace place, std::shared_ptr<Exchange> exchange);

  std::unique_ptr<StoppedRanksWatch> m_watch;  // first: the end of MPI waits for all ranks
  LaunchPlace m_place;
  std::shared_ptr<Exchange> m_exchange;
  std::shared_ptr<Communicator> m_communicator;
  bool m_isRefused = false;  // by all ranks
  bool m_isCancelled = false;
};

/// The sentence of agree() about the first fact that differs, and the ranks that differ alike; empty: all ranks have
/// the same.
std::string difference(const std::vector<std::vector<JobFact>>& factsByRank);

}  // namespace fuseline
