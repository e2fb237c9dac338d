// One thread a rank, which waits for work; none where ranks are processes.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rank_team.h"

#include "core/collective/in_process.h"

#include <exception>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// Kernels may throw where nobody expects it: a thread must not end with that.
Result<void> guarded(const RankTeam::Work& work, int rank) {
  try {
    return work(rank);
  } catch (const std::exception& problem) {
    return Error{problem.what(), ErrorKind::RunFailed};
  }
}

}  // namespace

RankTeam::RankTeam(int ranks, RankWatch watch)
    : m_watch(std::move(watch)),
      m_size(ranks),
      m_communicators(makeInProcessGroup(ranks, m_watch.patience)),
      m_isBusy(m_communicators.size()) {
  for (int rank = 0; rank < ranks; ++rank) m_threads.emplace_back([this, rank] { serve(rank); });
}

RankTeam::RankTeam(std::shared_ptr<Communicator> own) : m_size(own->size()), m_own(std::move(own)) {}

RankTeam::~RankTeam() {
  {
    const std::lock_guard lock(m_mutex);
    m_isOver = true;
  }
  m_changed.notify_all();
}

Result<void> RankTeam::run(const Work& work) {
  if (areProcesses()) return runHere(work);
  std::unique_lock lock(m_mutex);
  if (m_failure) return *m_failure;
  m_work = &work;
  m_numBusy = size();
  m_isBusy.assign(m_isBusy.size(), true);
  ++m_turn;
  m_changed.notify_all();
  const auto isDone = [&] { return m_numBusy == 0; };
  m_changed.wait(lock, [&] { return isDone() || m_failure; });
  if (!m_changed.wait_for(lock, m_watch.timeToEnd, isDone) && m_watch.whenRankHangs)
    m_watch.whenRankHangs(withRanksThatHang());
  m_changed.wait(lock, isDone);
  return m_failure ? Result<void>(*m_failure) : Result<void>();
}

Result<void> RankTeam::runHere(const Work& work) {
  if (!m_failure) finish(firstHere(), guarded(work, firstHere()));
  return m_failure ? Result<void>(*m_failure) : Result<void>();
}

void RankTeam::serve(int rank) {
  std::uint64_t done = 0;
  while (true) {
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [&] { return m_isOver || m_turn != done; });
    if (m_isOver) return;
    done = m_turn;
    const Work& work = *m_work;
    lock.unlock();
    finish(rank, guarded(work, rank));
  }
}

/// The ranks that fail after the first one do so because they wait for it.
void RankTeam::finish(int rank, const Result<void>& done) {
  const std::lock_guard lock(m_mutex);
  if (!done && !m_failure) {
    m_failure = Error{fmt::format("rank {} of {}: {}", rank, size(), done.error().message), done.error().kind};
    communicator(rank).abort(m_failure->message);
  }
  if (areProcesses()) return;
  m_isBusy[static_cast<std::size_t>(rank)] = false;
  --m_numBusy;
  if (m_numBusy == 0 || m_failure) m_changed.notify_all();
}

Error RankTeam::withRanksThatHang() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank)
    if (m_isBusy[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  return {fmt::format("{} Rank{} {} had not ended {:.3g} s later.", m_failure->message, ranks.size() == 1 ? "" : "s",
                      fmt::join(ranks, ", "), m_watch.timeToEnd.count()),
          m_failure->kind};
}

}  // namespace fuseline
