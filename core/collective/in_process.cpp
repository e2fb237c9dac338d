// Ranks meet, read each other's tensors, and meet again before anyone may write them.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/in_process.h"

#include "core/collective/beside_thread.h"
#include "core/collective/ordered_reduction.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Clock = std::chrono::steady_clock;

std::size_t bytesOf(const CollectivePart& part, std::int64_t count) {
  return static_cast<std::size_t>(count * sizeBytes(part.dtype));
}

std::string describe(const Collective& call) {
  std::string text = fmt::format("{} of", collectiveName(call.kind));
  for (const CollectivePart& part : call.parts) text += fmt::format(" {} {}", part.count, dtypeName(part.dtype));
  return text;
}

/// Where ranks wait for each other.
class Meeting {
 public:
  Meeting(int ranks, const Patience& patience)
      : m_patience(patience), m_calls(static_cast<std::size_t>(ranks)), m_isHere(m_calls.size()) {}

  const Patience& patience() const { return m_patience; }
  int size() const { return static_cast<int>(m_calls.size()); }
  /// The call of another rank, from arrive() to the arrive() after it.
  const Collective& callOf(int rank) const { return *m_calls[static_cast<std::size_t>(rank)]; }

  /// Returns when all ranks are here; `call` is the rank's own until it leaves, nullptr for a barrier. Throws if a rank
  /// failed or does not come, or if the calls differ.
  void arrive(int rank, const Collective* call) {
    std::unique_lock lock(m_mutex);
    throwFailure();
    m_calls[static_cast<std::size_t>(rank)] = call;
    m_isHere[static_cast<std::size_t>(rank)] = true;
    const std::uint64_t turn = m_turn;
    if (isLast() && call) checkCalls();
    const Clock::time_point start = Clock::now();
    if (m_isOver.wait_for(lock, m_waiting.limit(), [&] { return m_turn != turn || m_failure; }))
      m_waiting.waited(Clock::now() - start);
    else
      failLate(call);
    if (m_turn == turn || m_isDifferent) throwFailure();
  }

  /// The same after arrive(). All ranks come, whatever failed meanwhile: they may still read each other's tensors.
  void leave() {
    std::unique_lock lock(m_mutex);
    const std::uint64_t turn = m_turn;
    if (!isLast()) m_isOver.wait(lock, [&] { return m_turn != turn; });
  }

  std::optional<std::string> failure() const {
    const std::lock_guard lock(m_mutex);
    return m_failure;
  }

  void fail(std::string_view reason) noexcept {
    const std::lock_guard lock(m_mutex);
    if (!m_failure) m_failure = reason;
    m_isOver.notify_all();
  }

 private:
  bool isLast() {
    if (++m_numHere < size()) return false;
    m_numHere = 0;
    m_isHere.assign(m_isHere.size(), false);
    ++m_turn;
    m_isOver.notify_all();
    return true;
  }

  void failLate(const Collective* call) {
    const auto missing = std::ranges::find(m_isHere, false) - m_isHere.begin();
    m_failure = fmt::format(
        "rank {} of {} did not reach {} within {:.3g} s. It may hang: attach a debugger, or wait "
        "longer with --rank-timeout.",
        missing, size(), call ? call->name : "the start of a run", m_waiting.limit().count());
    m_isOver.notify_all();
  }

  void throwFailure() const {
    if (m_failure) throw CommunicationError(*m_failure, !m_isDifferent);
  }

  void checkCalls() {
    const std::string first = describe(callOf(0));
    for (int rank = 1; rank < size() && !m_failure; ++rank) {
      const std::string other = describe(callOf(rank));
      if (other == first && callOf(rank).reduction == callOf(0).reduction) continue;
      m_isDifferent = true;
      m_failure = fmt::format("rank {} calls {} ({}), but rank 0 calls {} ({}). All ranks must run the same plan.",
                              rank, other, callOf(rank).name, first, callOf(0).name);
    }
  }

  Patience m_patience;
  Patience m_waiting = m_patience;
  mutable std::mutex m_mutex;
  std::condition_variable m_isOver;
  std::vector<const Collective*> m_calls;  // by rank
  std::vector<bool> m_isHere;              // by rank: has arrived in this turn
  int m_numHere = 0;
  std::uint64_t m_turn = 0;
  bool m_isDifferent = false;
  std::optional<std::string> m_failure;
};

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<Meeting> meeting, int rank) : m_meeting(std::move(meeting)), m_rank(rank) {}

  int rank() const override { return m_rank; }
  int size() const override { return m_meeting->size(); }

  void run(const Collective& collective) override {
    m_meeting->arrive(m_rank, &collective);
    for (std::size_t part = 0; part < collective.parts.size(); ++part) exchange(collective, part);
    m_meeting->leave();
  }

  Patience patience() const override { return m_meeting->patience(); }
  void begin(const Collective& collective) override {
    m_beside.begin([this, collective] { run(collective); });
  }
  void await() override { m_beside.await(); }
  std::optional<BesideSpan> besideSpan() const override { return m_beside.span(); }
  void leave() noexcept override { m_beside.settle(); }

  void barrier() override { m_meeting->arrive(m_rank, nullptr); }
  std::optional<std::string> failure() const override { return m_meeting->failure(); }
  void abort(std::string_view reason) noexcept override { m_meeting->fail(reason); }

  std::vector<std::pair<std::string, std::string>> details() const override {
    return {{"communicator", "in process"}, {"sums", "float32 in rank order, rounded once"}};
  }

 private:
  const CollectivePart& partOf(int rank, std::size_t part) const { return m_meeting->callOf(rank).parts[part]; }

  void exchange(const Collective& collective, std::size_t part) const {
    const CollectivePart& own = collective.parts[part];
    switch (collective.kind) {
      case CollectiveKind::AllGather: return gather(own, part);
      case CollectiveKind::ReduceScatter:
        return reduce(collective.reduction, part, {own.count * m_rank, own.count}, own.to);
      case CollectiveKind::AllReduce: return reduceEverywhere(collective.reduction, own, part);
      case CollectiveKind::Broadcast:
        if (own.to != partOf(0, part).from) copy(own.to, partOf(0, part).from, bytesOf(own, own.count));
    }
  }

  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }

  void gather(const CollectivePart& own, std::size_t part) const {
    const std::size_t bytes = bytesOf(own, own.count);
    for (int rank = 0; rank < size(); ++rank) copy(own.to + rank * own.strideBytes(), partOf(rank, part).from, bytes);
  }

  void reduce(Reduction reduction, std::size_t part, const ElementRange& range, std::byte* out) const {
    if (range.count == 0) return;
    std::vector<const std::byte*> contributions;
    for (int rank = 0; rank < size(); ++rank)
      contributions.push_back(partOf(rank, part).from + bytesOf(partOf(rank, part), range.first));
    reduceInRankOrder(reduction, partOf(0, part).dtype, contributions, range.count, out);
  }

  /// Every rank adds its slice and gives it to all. No other rank reads that slice of any tensor.
  void reduceEverywhere(Reduction reduction, const CollectivePart& own, std::size_t part) const {
    const ElementRange slice = sliceOf(own.count, m_rank, size());
    if (slice.count == 0) return;
    const std::size_t first = bytesOf(own, slice.first);
    reduce(reduction, part, slice, own.to + first);
    for (int rank = 0; rank < size(); ++rank)
      if (rank != m_rank) copy(partOf(rank, part).to + first, own.to + first, bytesOf(own, slice.count));
  }

  std::shared_ptr<Meeting> m_meeting;
  int m_rank;
  BesideThread m_beside;  // last: it uses the others
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> makeInProcessGroup(int ranks, const Patience& patience) {
  const auto meeting = std::make_shared<Meeting>(ranks, patience);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank)
    communicators.push_back(std::make_unique<InProcessCommunicator>(meeting, rank));
  return communicators;
}

}  // namespace fuseline
