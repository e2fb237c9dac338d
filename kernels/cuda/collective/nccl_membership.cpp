// Polls instead of waiting: a rank that failed is known to the host's communicator only.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/collective/nccl_membership.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPollPause = std::chrono::microseconds(50);
/// The first polls follow each other at once: most waits are short.
constexpr int kPollsWithoutPause = 200;
/// A rank that reports a failure of its own group may come after the failure of NCCL that it causes.
constexpr auto kTimeToLearnTheCause = std::chrono::seconds(2);
constexpr auto kTimeToEnd = std::chrono::seconds(10);

class Pauses {
 public:
  void pause() {
    if (++m_polls < kPollsWithoutPause)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPollPause);
  }

 private:
  int m_polls = 0;
};

NcclId sharedId(const Nccl& nccl, Communicator& host) {
  NcclId id;
  const NcclStatus made = host.rank() == 0 ? nccl.makeId(&id) : NcclStatus::Success;
  if (!host.agree(made == NcclStatus::Success))
    throw CommunicationError(fmt::format("NCCL cannot begin: {}.", nccl.errorString(made)),
                             made == NcclStatus::Success);
  auto* const bytes = reinterpret_cast<std::byte*>(id.bytes);
  // As float32, the type that every communicator moves; a broadcast copies bits.
  const CollectivePart part{.dtype = DType::F32, .count = sizeof(id.bytes) / sizeof(float), .from = bytes, .to = bytes};
  host.run({.kind = CollectiveKind::Broadcast, .name = "NCCL's id", .parts = {&part, 1}});
  return id;
}

}  // namespace

NcclMembership::NcclMembership(const Nccl& nccl, Communicator& host) : m_nccl(nccl), m_host(host) {
  const NcclId id = sharedId(m_nccl, m_host);
  NcclConfig config;
  const std::string action = "make its communicator";
  try {
    complete(m_nccl.initRank(&m_handle, host.size(), id, host.rank(), &config), action);
  } catch (...) {
    leave();
    throw;
  }
}

NcclMembership::~NcclMembership() {
  if (m_handle && !m_host.failure() && hasEnded()) m_nccl.destroy(std::exchange(m_handle, nullptr));
  leave();
}

/// Waits for the other ranks, which end, too; not for ever.
bool NcclMembership::hasEnded() {
  NcclStatus state = m_nccl.finalize(m_handle);
  Pauses pauses;
  const Clock::time_point until = Clock::now() + kTimeToEnd;
  while (state == NcclStatus::InProgress && Clock::now() < until) {
    pauses.pause();
    if (m_nccl.asyncError(m_handle, &state) != NcclStatus::Success) break;
  }
  return state == NcclStatus::Success;
}

NcclHandle NcclMembership::handle() const {
  if (m_handle) return m_handle;
  throw CommunicationError(m_host.failure().value_or("This rank has left its group."), true);
}

void NcclMembership::leave() noexcept {
  if (m_handle) m_nccl.abort(m_handle);
  m_handle = nullptr;
}

void NcclMembership::fail(NcclStatus status, const std::string& action) {
  std::string words = m_nccl.errorString(status);
  const char* const detail = m_nccl.lastError(m_handle);
  if (detail && std::strlen(detail) > 0) words += fmt::format(": {}", detail);
  leave();
  const Clock::time_point until = Clock::now() + kTimeToLearnTheCause;
  while (status == NcclStatus::RemoteError && Clock::now() < until) {
    if (const std::optional<std::string> cause = m_host.failure()) throw CommunicationError(*cause, true);
    std::this_thread::sleep_for(kPollPause);
  }
  const char* const advice =
      status == NcclStatus::SystemError ? " A container may need --shm-size=1g --ulimit memlock=-1." : "";
  throw CommunicationError(
      fmt::format("NCCL could not {}: {}. NCCL_DEBUG=WARN prints its reasons.{}", action, words, advice),
      status == NcclStatus::RemoteError);
}

void NcclMembership::complete(NcclStatus status, const std::string& action) {
  if (status == NcclStatus::InProgress) return poll(action);
  if (status != NcclStatus::Success) fail(status, action);
}

void NcclMembership::poll(const std::string& action) {
  Pauses pauses;
  NcclStatus state = NcclStatus::InProgress;
  const Clock::time_point start = Clock::now();
  while (state == NcclStatus::InProgress) {
    if (Clock::now() - start > m_patience.limit())
      throw CommunicationError(fmt::format("NCCL could not {} within {:.3g} s. Another rank may hang; --rank-timeout "
                                           "waits longer.",
                                           action, m_patience.limit().count()),
                               true);
    if (const std::optional<std::string> cause = m_host.failure()) {
      leave();
      throw CommunicationError(*cause, true);
    }
    if (const NcclStatus asked = m_nccl.asyncError(m_handle, &state); asked != NcclStatus::Success) fail(asked, action);
    if (state == NcclStatus::InProgress) pauses.pause();
  }
  if (state != NcclStatus::Success) fail(state, action);
}

void NcclMembership::check() {
  if (const std::optional<std::string> cause = m_host.failure()) {
    leave();
    throw CommunicationError(*cause, true);
  }
  NcclStatus state = NcclStatus::Success;
  const NcclStatus asked = m_nccl.asyncError(handle(), &state);
  if (asked != NcclStatus::Success) fail(asked, "report the state of its collectives");
  if (state != NcclStatus::Success && state != NcclStatus::InProgress) fail(state, "complete a collective");
}

int NcclMembership::waitFor(Stream stream) {
  Pauses pauses;
  const Clock::time_point start = Clock::now();
  cudaError_t state = cudaStreamQuery(stream);
  while (state == cudaErrorNotReady) {
    try {
      check();
    } catch (const CommunicationError&) {
      drain(stream);
      throw;
    }
    if (Clock::now() - start > m_patience.limit()) failLate(stream);
    pauses.pause();
    state = cudaStreamQuery(stream);
  }
  m_patience.waited(Clock::now() - start);
  return state;
}

/// Without the collectives that wait for others, a device that works comes to its end, and its memory can be freed.
void NcclMembership::drain(Stream stream) {
  Pauses pauses;
  while (cudaStreamQuery(stream) == cudaErrorNotReady) pauses.pause();
}

/// The host's group knows which rank does not come.
void NcclMembership::failLate(Stream stream) {
  leave();
  drain(stream);
  const std::string late = fmt::format("a collective of NCCL did not end within {:.3g} s", m_patience.limit().count());
  try {
    m_host.agree(true);
  } catch (const std::exception& cause) {
    throw CommunicationError(fmt::format("{}: {}", late, cause.what()), true);
  }
  throw CommunicationError(late + ", but no rank hangs. NCCL_DEBUG=WARN prints its reasons.", true);
}

}  // namespace fuseline::cuda
