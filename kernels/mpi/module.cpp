// Exchanges as messages between pairs of ranks: a rank that does not come is known by the message that is missing.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/mpi/module.h"

#include "core/support/result.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <mpi.h>
#include <unistd.h>

#include <fmt/format.h>

namespace fuseline::mpi {

namespace {

using Clock = std::chrono::steady_clock;
using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

constexpr int kDataTag = 1;
constexpr int kAbortTag = 2;
/// MPI counts with int.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kLongestReason = 4096;
/// Ranks that share a core let each other run; whoever waits longer sleeps.
constexpr auto kSpinning = std::chrono::milliseconds(5);
constexpr auto kNap = std::chrono::microseconds(100);
constexpr Seconds kGoodbye{1.0};  // for the last words of a rank

/// MPI waits for all ranks without a limit when it starts. Ends the process when that lasts too long.
class WatchOverStart {
 public:
  explicit WatchOverStart(Seconds limit)
      : m_thread([limit](const std::stop_token& over) {
          const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
          while (!over.stop_requested() && Clock::now() < end) std::this_thread::sleep_for(kWatch);
          if (over.stop_requested()) return;
          fmt::print(stderr,
                     "fuseline: MPI did not start within {:.0f} s: a rank is missing. Look for a process that hangs or "
                     "is stopped, or wait longer with --rank-timeout.\n",
                     limit.count());
          std::_Exit(static_cast<int>(ErrorKind::RunFailed));
        }) {}

 private:
  static constexpr auto kWatch = std::chrono::milliseconds(5);
  std::jthread m_thread;
};

struct Hello {
  int process = 0;
  std::array<char, 60> host = {};
};

class MpiExchange final : public Exchange {
 public:
  explicit MpiExchange(Patience patience) : m_patience(patience) {
    MPI_Comm_dup(MPI_COMM_WORLD, &m_group);
    MPI_Comm_set_errhandler(m_group, MPI_ERRORS_RETURN);
    MPI_Comm_rank(m_group, &m_rank);
    MPI_Comm_size(m_group, &m_size);
    Hello own{.process = getpid()};
    gethostname(own.host.data(), own.host.size() - 1);
    m_hellos.resize(ranks());
    MPI_Allgather(&own, sizeof(own), MPI_BYTE, m_hellos.data(), sizeof(own), MPI_BYTE, m_group);
  }

  /// After a failure MPI would wait for ranks that have ended.
  ~MpiExchange() override {
    if (!m_fault && !m_hasAborted) MPI_Finalize();
  }

  int rank() const override { return m_rank; }
  int size() const override { return m_size; }
  std::optional<PeerFault> fault() const override { return m_fault; }

  std::vector<std::pair<std::string, std::string>> details() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string version(text.data(), static_cast<std::size_t>(length));
    return {{"communicator", fmt::format("MPI, {}", version.substr(0, version.find(',')))}};
  }

  void exchange(std::span<const ConstBytes> out, std::span<const Bytes> in, std::string_view name) override {
    if (m_fault) throw CommunicationError(m_fault->sentence, true);
    m_name = name;
    const Clock::time_point start = Clock::now();
    post(out, in);
    await(start);
    m_patience.waited(Clock::now() - start);
  }

  void abort(std::string_view reason) noexcept override {
    if (m_fault || m_hasAborted) return;
    m_hasAborted = true;
    const auto length = static_cast<int>(std::min(reason.size(), kLongestReason));
    std::vector<MPI_Request> requests;
    for (int rank = 0; rank < m_size; ++rank)
      if (rank != m_rank)
        MPI_Isend(reason.data(), length, MPI_BYTE, rank, kAbortTag, m_group, &requests.emplace_back());
    const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(kGoodbye);
    for (int isDone = 0; isDone == 0 && Clock::now() < end; std::this_thread::sleep_for(kNap))
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &isDone, MPI_STATUSES_IGNORE);
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(m_size); }

  std::string describe(int rank) const {
    const Hello& hello = m_hellos[static_cast<std::size_t>(rank)];
    return fmt::format("rank {} of {} (process {} on {})", rank, m_size, hello.process, hello.host.data());
  }

  void check(int code) {
    if (code == MPI_SUCCESS) return;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    const std::string reason =
        fmt::format("MPI in {}: {}.", m_name, std::string_view(text.data(), static_cast<std::size_t>(length)));
    abort(reason);
    throw CommunicationError(reason, false);
  }

  void post(std::span<const ConstBytes> out, std::span<const Bytes> in) {
    m_requests.clear();
    m_sources.clear();
    for (int rank = 0; rank < m_size; ++rank) {
      if (rank == m_rank) continue;
      receive(in[static_cast<std::size_t>(rank)], rank);
      send(out[static_cast<std::size_t>(rank)], rank);
    }
  }

  void receive(Bytes bytes, int rank) {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(kMostBytes, bytes.size()))) {
      const auto count = static_cast<int>(std::min(kMostBytes, bytes.size()));
      check(MPI_Irecv(bytes.data(), count, MPI_BYTE, rank, kDataTag, m_group, &m_requests.emplace_back()));
      m_sources.push_back(rank);
    }
  }

  void send(ConstBytes bytes, int rank) {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(kMostBytes, bytes.size()))) {
      const auto count = static_cast<int>(std::min(kMostBytes, bytes.size()));
      check(MPI_Isend(bytes.data(), count, MPI_BYTE, rank, kDataTag, m_group, &m_requests.emplace_back()));
      m_sources.push_back(-1);
    }
  }

  /// Open MPI makes progress only while somebody asks.
  void await(Clock::time_point start) {
    const Clock::time_point deadline = start + std::chrono::duration_cast<Clock::duration>(m_patience.limit());
    while (true) {
      int isDone = 0;
      check(MPI_Testall(static_cast<int>(m_requests.size()), m_requests.data(), &isDone, MPI_STATUSES_IGNORE));
      if (isDone != 0) return;
      const Clock::time_point now = Clock::now();
      if (now - start < kSpinning) {
        std::this_thread::yield();
        continue;
      }
      throwOthersReason();
      if (now > deadline) failLate();
      std::this_thread::sleep_for(kNap);
    }
  }

  void throwOthersReason() {
    int isThere = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, m_group, &isThere, &status));
    if (isThere == 0) return;
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    std::string reason(static_cast<std::size_t>(length), ' ');
    check(MPI_Recv(reason.data(), length, MPI_BYTE, status.MPI_SOURCE, kAbortTag, m_group, MPI_STATUS_IGNORE));
    fail({.rank = status.MPI_SOURCE, .sentence = reason, .isReported = true});
  }

  [[noreturn]] void failLate() {
    int missing = m_rank == 0 ? 1 : 0;
    for (std::size_t i = 0; i < m_requests.size(); ++i) {
      int isDone = 0;
      MPI_Test(&m_requests[i], &isDone, MPI_STATUS_IGNORE);
      if (isDone == 0 && m_sources[i] >= 0) missing = m_sources[i];
    }
    fail(
        {.rank = missing,
         .sentence = fmt::format(
             "{} did not reach {} within {:.0f} s. It may hang: attach a debugger, or wait longer with --rank-timeout.",
             describe(missing), m_name, m_patience.limit().count())});
  }

  [[noreturn]] void fail(PeerFault fault) {
    m_fault = std::move(fault);
    throw CommunicationError(m_fault->sentence, true);
  }

  Patience m_patience;
  MPI_Comm m_group = MPI_COMM_NULL;
  int m_rank = 0;
  int m_size = 1;
  std::vector<Hello> m_hellos;
  std::string m_name;
  std::vector<MPI_Request> m_requests;
  std::vector<int> m_sources;  // of each request the rank that sends; -1: this one does
  std::optional<PeerFault> m_fault;
  bool m_hasAborted = false;
};

}  // namespace

}  // namespace fuseline::mpi

const char* fuselineMpiHandshake() { return fuseline::mpi::kModuleHandshake; }

fuseline::Exchange* fuselineMpiJoin(double rankTimeoutSeconds, const char** problem) {
  const bool hasLimit = rankTimeoutSeconds > 0.0;
  const fuseline::Patience patience(hasLimit ? std::optional(fuseline::Seconds(rankTimeoutSeconds)) : std::nullopt);
  const fuseline::mpi::WatchOverStart watch(patience.limit());
  int provided = MPI_THREAD_SINGLE;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  *problem = "MPI_Init_thread fails.";
  if (code != MPI_SUCCESS) return nullptr;
  *problem =
      "This MPI supports only one thread, but Fuseline needs several. Install an MPI with MPI_THREAD_SERIALIZED.";
  if (provided < MPI_THREAD_SERIALIZED) return nullptr;
  return new fuseline::mpi::MpiExchange(patience);
}
