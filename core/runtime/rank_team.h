// RankTeam: the ranks of a group: threads of this process, or processes of which this one is a rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"
#include "core/support/result.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace fuseline {

/// How ranks that are threads are watched.
struct RankWatch {
  Patience patience = Patience();
  /// Called when a rank has failed and another one has not ended `timeToEnd` later: with that failure, and the ranks
  /// that have not ended. A thread that hangs cannot be ended without its process. nullptr: it is waited for.
  std::function<void(const Error&)> whenRankHangs = nullptr;
  Seconds timeToEnd{10.0};
};

/// Threads live as long as the team: libraries keep a pool of workers for each.
class RankTeam {
 public:
  using Work = std::function<Result<void>(int rank)>;

  explicit RankTeam(int ranks, RankWatch watch = {});
  /// This process is one rank. Its work is done by the calling thread.
  explicit RankTeam(std::shared_ptr<Communicator> own);
  ~RankTeam();
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;

  int size() const { return m_size; }
  /// Is it a rank of this process?
  bool isHere(int rank) const { return !m_own || m_own->rank() == rank; }
  bool areProcesses() const { return m_own != nullptr; }
  int firstHere() const { return m_own ? m_own->rank() : 0; }
  /// rank: one of this process.
  Communicator& communicator(int rank) { return m_own ? *m_own : *m_communicators[static_cast<std::size_t>(rank)]; }

  /// Runs the work as every rank of this process at once, and waits for them. The first rank that fails ends the
  /// communication of the others, now and from then on. Errors: that of this rank, with its number.
  Result<void> run(const Work& work);

 private:
  Result<void> runHere(const Work& work);
  void serve(int rank);
  void finish(int rank, const Result<void>& done);
  Error withRanksThatHang() const;

  RankWatch m_watch;
  int m_size;
  std::shared_ptr<Communicator> m_own;
  std::vector<std::unique_ptr<Communicator>> m_communicators;
  std::mutex m_mutex;
  std::condition_variable m_changed;
  const Work* m_work = nullptr;
  std::uint64_t m_turn = 0;  // of the work
  int m_numBusy = 0;
  std::vector<bool> m_isBusy;  // by rank
  bool m_isOver = false;
  std::optional<Error> m_failure;
  std::vector<std::jthread> m_threads;
};

}  // namespace fuseline
