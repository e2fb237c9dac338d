// Fibers for the threads of a block, and the rules of barriers and warps.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt/simt.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ucontext.h>

namespace fuseline::simt {

namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr unsigned kMaxBlockThreads = 1024;
constexpr unsigned kMaxGridHeight = 65535;

class Cluster;
/// The cluster of the running thread; grids do not nest.
thread_local Cluster* t_cluster = nullptr;

enum class State { NotStarted, Ready, AtBarrier, AtClusterBarrier, AtShuffle, Finished };

struct Thread {
  State state = State::NotStarted;
  std::source_location where;  // of the wait
};

/// The slots of one warp. Two sets alternate: a lane that is ahead by one exchange cannot overwrite a slot being read.
struct Warp {
  std::array<std::array<std::uint64_t, kWarpSize>, 2> slots = {};
  unsigned numExchanges = 0;
  unsigned numWaiting = 0;
};

/// Position where a fiber continues, for the compiler's own setjmp. A sanitizer must not see the jump: it would
/// consider the skipped frames left, and unpoison the whole stack, which takes most of a test's time.
using Jump = std::array<void*, 5>;

[[gnu::noinline, gnu::no_sanitize_address]] void jumpTo(Jump& jump) { __builtin_longjmp(jump.data(), 1); }

/// Starts by its context; from then on it is left and entered by jumps.
struct Fiber {
  ucontext_t context = {};
  Jump jump = {};
  bool isStarted = false;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
};

std::string describe(const std::source_location& where) {
  const std::string path = where.file_name();
  return fmt::format("{}:{}", path.substr(path.rfind('/') + 1), where.line());
}

bool isSamePlace(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() && std::string_view(a.file_name()) == b.file_name();
}

/// Orders in which turns are taken.
class TurnOrder {
 public:
  TurnOrder(Turns turns, std::uint64_t seed) : m_turns(turns), m_random(seed) {}

  std::vector<unsigned> ofBlocks(std::uint64_t count) { return permutation(static_cast<unsigned>(count)); }

  /// The lanes of a warp stay together. count: threads of each block.
  std::vector<unsigned> ofThreads(unsigned count, unsigned numBlocks) {
    const unsigned warps = (count + kWarpSize - 1) / kWarpSize;
    std::vector<unsigned> threads;
    for (const unsigned warp : permutation(warps * numBlocks)) {
      const unsigned first = warp % warps * kWarpSize;
      for (const unsigned lane : permutation(std::min(kWarpSize, count - first)))
        threads.push_back(warp / warps * count + first + lane);
    }
    return threads;
  }

  bool isRandom() const { return m_turns == Turns::Random; }

 private:
  std::vector<unsigned> permutation(unsigned count) {
    std::vector<unsigned> order(count);
    std::iota(order.begin(), order.end(), 0U);
    if (m_turns == Turns::Descending) std::ranges::reverse(order);
    if (isRandom()) std::ranges::shuffle(order, m_random);
    return order;
  }

  Turns m_turns;
  std::mt19937_64 m_random;
};

thread_local TurnOrder t_turns(Turns::Ascending, 0);

/// State that the threads of one block share.
struct Block {
  Dim3 index;
  std::vector<float> dynamicShared;
  unsigned numFinished = 0;
  unsigned numAtBarrier = 0;
};

/// Blocks that run together: one, where a kernel has no clusters. Threads are numbered through. One fiber suffices for
/// threads that never wait; every thread that waits keeps its own.
class Cluster {
 public:
  Cluster(Dim3 grid, Dim3 block, const std::function<void()>& body, std::vector<std::unique_ptr<Fiber>> fibers)
      : m_body(body),
        m_place{.threadIdx = {}, .blockIdx = {}, .blockDim = block, .gridDim = grid},
        m_threadsOfBlock(static_cast<unsigned>(block.count())),
        m_warpsOfBlock((m_threadsOfBlock + kWarpSize - 1) / kWarpSize),
        m_fibers(std::move(fibers)) {}

  void run(std::vector<Block> blocks) {
    m_blocks = std::move(blocks);
    const unsigned count = m_threadsOfBlock * numBlocks();
    m_threads.assign(count, Thread{});
    m_warps.assign(std::size_t{m_warpsOfBlock} * numBlocks(), Warp{});
    m_fiberOf.assign(count, nullptr);
    m_free.clear();
    for (const auto& fiber : m_fibers) m_free.push_back(fiber.get());
    m_numFinished = 0;
    m_numAtClusterBarrier = 0;
    m_order = t_turns.ofThreads(m_threadsOfBlock, numBlocks());
    m_turn = 0;
    while (m_numFinished < count) resume(nextThread());
  }

  const Place& place() const { return m_place; }
  /// The lane of the running thread.
  unsigned lane() const { return m_current % m_threadsOfBlock % kWarpSize; }
  Block& currentBlock() { return m_blocks[m_current / m_threadsOfBlock]; }
  Block& block(unsigned rank) { return m_blocks.at(rank); }

  void wait(State state, std::source_location where) {
    m_threads[m_current] = {state, where};
    if (state == State::AtBarrier) releaseBarrier();
    if (state == State::AtClusterBarrier) releaseClusterBarrier();
    if (state == State::AtShuffle) releaseWarp();
    suspend();
  }

  Warp& currentWarp() {
    return m_warps[m_current / m_threadsOfBlock * m_warpsOfBlock + m_current % m_threadsOfBlock / kWarpSize];
  }

  /// The running thread, from its beginning to its end. The fiber may next run a thread of another block.
  void runCurrent() {
    m_body();
    m_threads[m_current].state = State::Finished;
    ++m_numFinished;
    Block& block = currentBlock();
    if (++block.numFinished == m_threadsOfBlock) clearShared(block);
    m_free.push_back(m_running);
    suspend();
  }

  /// When all threads have returned, their fibers are reused.
  std::vector<std::unique_ptr<Fiber>> takeFibers() && { return std::move(m_fibers); }

 private:
  unsigned numBlocks() const { return static_cast<unsigned>(m_blocks.size()); }

  /// A block that has ended has no memory that others of its cluster may read.
  static void clearShared(Block& block) {
    std::ranges::fill(block.dynamicShared, std::numeric_limits<float>::quiet_NaN());
  }

  /// The next thread that can continue, in turn; with random turns the first one in an order that every barrier draws
  /// anew, so that some warps are far ahead of others.
  unsigned nextThread() {
    const auto canRun = [&](unsigned thread) {
      const State state = m_threads[thread].state;
      return state == State::Ready || state == State::NotStarted;
    };
    const auto here = m_order.begin() + (t_turns.isRandom() ? 0 : static_cast<std::ptrdiff_t>(m_turn));
    auto found = std::find_if(here, m_order.end(), canRun);
    if (found == m_order.end()) found = std::find_if(m_order.begin(), here, canRun);
    if (found == m_order.end() || !canRun(*found)) throw DivergenceError(explainStandstill());
    m_turn = static_cast<std::size_t>(found - m_order.begin());
    return *found;
  }

  std::string describeBlock(std::ptrdiff_t thread) const {
    const Dim3& index = m_blocks[static_cast<std::size_t>(thread) / m_threadsOfBlock].index;
    return fmt::format("({}, {}, {})", index.x, index.y, index.z);
  }

  /// Prefers two threads of one block.
  std::string explainStandstill() const {
    const auto isWaiting = [](const Thread& t) { return t.state != State::Finished; };
    const auto waiting = std::ranges::find_if(m_threads, isWaiting);
    const auto isOther = [&](const Thread& t) {
      return t.state != waiting->state || !isSamePlace(t.where, waiting->where);
    };
    const auto first = (waiting - m_threads.begin()) / m_threadsOfBlock * m_threadsOfBlock;
    auto other = std::find_if(m_threads.begin() + first, m_threads.begin() + first + m_threadsOfBlock, isOther);
    if (other == m_threads.begin() + first + m_threadsOfBlock) other = std::ranges::find_if(m_threads, isOther);
    const std::string block = describeBlock(waiting - m_threads.begin());
    const std::string blockOfOther = describeBlock(other - m_threads.begin());
    return fmt::format("Block {}: thread {} waits at {}, but thread {}{} {}.", block,
                       (waiting - m_threads.begin()) % m_threadsOfBlock, describe(waiting->where),
                       (other - m_threads.begin()) % m_threadsOfBlock,
                       block == blockOfOther ? "" : " of block " + blockOfOther,
                       other->state == State::Finished ? "has returned" : "waits at " + describe(other->where));
  }

  /// All of `threads` wait for the same thing at the same line.
  bool areTogether(unsigned first, unsigned last, State state) const {
    const Thread& leader = m_threads[first];
    return std::all_of(m_threads.begin() + first, m_threads.begin() + last, [&](const Thread& thread) {
      return thread.state == state && isSamePlace(thread.where, leader.where);
    });
  }

  void release(unsigned first, unsigned last) {
    for (unsigned thread = first; thread < last; ++thread) m_threads[thread].state = State::Ready;
  }

  void releaseBarrier() {
    Block& block = currentBlock();
    const unsigned first = m_current / m_threadsOfBlock * m_threadsOfBlock;
    const unsigned last = first + m_threadsOfBlock;
    if (++block.numAtBarrier < m_threadsOfBlock || !areTogether(first, last, State::AtBarrier)) return;
    block.numAtBarrier = 0;
    releaseInNewOrder(first, last);
  }

  void releaseClusterBarrier() {
    const auto count = static_cast<unsigned>(m_threads.size());
    if (++m_numAtClusterBarrier < count || !areTogether(0, count, State::AtClusterBarrier)) return;
    m_numAtClusterBarrier = 0;
    releaseInNewOrder(0, count);
  }

  void releaseInNewOrder(unsigned first, unsigned last) {
    if (t_turns.isRandom()) m_order = t_turns.ofThreads(m_threadsOfBlock, numBlocks());
    release(first, last);
  }

  void releaseWarp() {
    const unsigned inBlock = m_current % m_threadsOfBlock;
    const unsigned first = m_current - inBlock % kWarpSize;
    const unsigned last = std::min(first + kWarpSize, m_current - inBlock + m_threadsOfBlock);
    Warp& warp = currentWarp();
    if (++warp.numWaiting < last - first || !areTogether(first, last, State::AtShuffle)) return;
    warp.numWaiting = 0;
    ++warp.numExchanges;
    release(first, last);
  }

  [[gnu::no_sanitize_address]] void resume(unsigned thread) {
    if (!m_fiberOf[thread]) m_fiberOf[thread] = takeFiber();
    m_running = m_fiberOf[thread];
    m_current = thread;
    m_threads[thread].state = State::Ready;
    m_place.blockIdx = currentBlock().index;
    m_place.threadIdx = indexOf(thread % m_threadsOfBlock);
    if (__builtin_setjmp(m_scheduler.data()) == 0) enter(*m_running);
  }

  /// Returns by a jump only.
  [[gnu::no_sanitize_address]] static void enter(Fiber& fiber) {
    if (fiber.isStarted) jumpTo(fiber.jump);
    fiber.isStarted = true;
    setcontext(&fiber.context);
    throw std::runtime_error("A fiber could not be started.");
  }

  [[gnu::no_sanitize_address]] void suspend() {
    if (__builtin_setjmp(m_running->jump.data()) == 0) jumpTo(m_scheduler);
  }

  Dim3 indexOf(unsigned thread) const {
    const Dim3& dim = m_place.blockDim;
    return {thread % dim.x, thread / dim.x % dim.y, thread / dim.x / dim.y};
  }

  Fiber* takeFiber() {
    if (m_free.empty()) addFiber();
    Fiber* const fiber = m_free.back();
    m_free.pop_back();
    return fiber;
  }

  static void runThreads() {
    for (;;) t_cluster->runCurrent();
  }

  void addFiber() {
    m_fibers.push_back(std::make_unique<Fiber>());
    Fiber& fiber = *m_fibers.back();
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    makecontext(
        &fiber.context, [] { t_cluster->runThreads(); }, 0);
    m_free.push_back(&fiber);
  }

  const std::function<void()>& m_body;
  Place m_place;
  unsigned m_threadsOfBlock;
  unsigned m_warpsOfBlock;
  std::vector<Block> m_blocks;
  Jump m_scheduler = {};
  std::vector<std::unique_ptr<Fiber>> m_fibers;
  std::vector<Fiber*> m_free;
  std::vector<Fiber*> m_fiberOf;  // by thread
  std::vector<Thread> m_threads;
  std::vector<unsigned> m_order;  // of the threads' turns
  std::size_t m_turn = 0;         // of the current one
  std::vector<Warp> m_warps;
  Fiber* m_running = nullptr;
  unsigned m_current = 0;
  unsigned m_numFinished = 0;
  unsigned m_numAtClusterBarrier = 0;
};

void checkSize(Dim3 grid, Dim3 block) {
  const bool fits = block.count() <= kMaxBlockThreads && grid.y <= kMaxGridHeight && grid.z <= kMaxGridHeight;
  if (fits && grid.count() > 0 && block.count() > 0) return;
  throw std::invalid_argument(fmt::format("No device takes a grid of ({}, {}, {}) blocks of ({}, {}, {}) threads.",
                                          grid.x, grid.y, grid.z, block.x, block.y, block.z));
}

void checkClusters(Dim3 grid, unsigned clusterBlocks) {
  constexpr unsigned kMaxClusterBlocks = 16;
  if (clusterBlocks > 0 && clusterBlocks <= kMaxClusterBlocks && grid.x % clusterBlocks == 0) return;
  throw std::invalid_argument(fmt::format("No device splits {} blocks into clusters of {}.", grid.x, clusterBlocks));
}

/// clusterBlocks: neighbors in x.
void runBlocks(Cluster& runner, Dim3 grid, std::size_t sharedBytes, unsigned clusterBlocks) {
  const std::vector<float> shared(sharedBytes / sizeof(float), std::numeric_limits<float>::quiet_NaN());
  for (const unsigned cluster : t_turns.ofBlocks(grid.count() / clusterBlocks)) {
    std::vector<Block> blocks;
    for (unsigned block = cluster * clusterBlocks; block < (cluster + 1) * clusterBlocks; ++block)
      blocks.push_back({{block % grid.x, block / grid.x % grid.y, block / grid.x / grid.y}, shared});
    runner.run(std::move(blocks));
  }
}

/// Ends with the scope, also by an exception.
class CurrentCluster {
 public:
  explicit CurrentCluster(Cluster& cluster) { t_cluster = &cluster; }
  ~CurrentCluster() { t_cluster = nullptr; }
  CurrentCluster(const CurrentCluster&) = delete;
  CurrentCluster& operator=(const CurrentCluster&) = delete;
};

}  // namespace

TurnsInScope::TurnsInScope(Turns turns, std::uint64_t seed) { t_turns = TurnOrder(turns, seed); }

TurnsInScope::~TurnsInScope() { t_turns = TurnOrder(Turns::Ascending, 0); }

namespace {
thread_local std::vector<std::function<void()>>* t_recording = nullptr;
thread_local Wrapper t_wrapper;

/// Ends with the scope, also by an exception.
class CurrentRecording {
 public:
  explicit CurrentRecording(std::vector<std::function<void()>>& recording) { t_recording = &recording; }
  ~CurrentRecording() { t_recording = nullptr; }
  CurrentRecording(const CurrentRecording&) = delete;
  CurrentRecording& operator=(const CurrentRecording&) = delete;
};
}  // namespace

namespace {
Submitter submitterOfAll;
}  // namespace

void setSubmitter(Submitter submitter) { submitterOfAll = std::move(submitter); }

void setWrapper(Wrapper wrapper) { t_wrapper = std::move(wrapper); }

namespace {
void runOrRecord(std::function<void()> work) {
  if (!t_recording) return work();
  t_recording->push_back(std::move(work));
}
}  // namespace

struct SideStreams::Stream {
  bool isForked = false;
  std::vector<std::function<void()>> work;

  static void submit(const void* stream, std::function<void()> work) {
    auto& side = *static_cast<Stream*>(const_cast<void*>(stream));
    if (!side.isForked) throw std::logic_error("Work is launched on a stream that is not forked.");
    side.work.push_back(std::move(work));
  }
};

SideStreams::SideStreams(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) m_streams.push_back(std::make_unique<Stream>());
}
SideStreams::~SideStreams() = default;

const void* SideStreams::at(std::size_t stream) const { return m_streams.at(stream).get(); }

void SideStreams::fork(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) m_streams.at(i)->isForked = true;
}

void SideStreams::join(std::size_t count) {
  std::vector<std::vector<std::function<void()>>> waiting;
  std::size_t most = 0;
  for (std::size_t i = count; i-- > 0;) {
    waiting.push_back(std::exchange(m_streams.at(i)->work, {}));
    m_streams.at(i)->isForked = false;
    most = std::max(most, waiting.back().size());
  }
  for (std::size_t piece = 0; piece < most; ++piece)
    for (const auto& work : waiting)
      if (piece < work.size()) runOrRecord(work[piece]);
}

void submit(const void* stream, std::function<void()> work) {
  if (t_wrapper) work = t_wrapper(std::move(work));
  if (submitterOfAll) return submitterOfAll(stream, std::move(work));
  if (stream) return SideStreams::Stream::submit(stream, std::move(work));
  runOrRecord(std::move(work));
}

std::vector<std::function<void()>> record(const std::function<void()>& launches) {
  std::vector<std::function<void()>> recording;
  const CurrentRecording scope(recording);
  launches();
  return recording;
}

bool isRecording() { return t_recording != nullptr; }

const Place& place() { return t_cluster->place(); }

void syncThreads(std::source_location where) { t_cluster->wait(State::AtBarrier, where); }
void syncCluster(std::source_location where) { t_cluster->wait(State::AtClusterBarrier, where); }

float* dynamicShared() { return t_cluster->currentBlock().dynamicShared.data(); }

const void* sharedOfBlock(unsigned rank, const void* address) {
  const std::vector<float>& own = t_cluster->currentBlock().dynamicShared;
  const std::less<const void*> isBefore;
  if (isBefore(address, own.data()) || !isBefore(address, own.data() + own.size())) {
    fmt::print(stderr, "Only dynamic shared memory has a counterpart in other blocks of a cluster here.\n");
    std::abort();  // an exception cannot leave a fiber
  }
  const auto offset = static_cast<const std::byte*>(address) - reinterpret_cast<const std::byte*>(own.data());
  return reinterpret_cast<const std::byte*>(t_cluster->block(rank).dynamicShared.data()) + offset;
}

namespace {
constexpr std::size_t kSectorBytes = 32;

struct Traffic {
  std::set<std::pair<std::uintptr_t, Access>> ofGrid;  // sectors
  std::uint64_t bytes = 0;                             // of the grids before

  void touch(const void* address, std::size_t size, Access kind) {
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    for (std::uintptr_t sector = first / kSectorBytes; sector * kSectorBytes < first + size; ++sector)
      ofGrid.emplace(sector, kind);
  }
  void endGrid() {
    bytes += ofGrid.size() * kSectorBytes;
    ofGrid.clear();
  }
};
thread_local std::optional<Traffic> t_traffic;
}  // namespace

CountedTraffic::CountedTraffic() { t_traffic.emplace(); }
CountedTraffic::~CountedTraffic() { t_traffic.reset(); }
std::uint64_t CountedTraffic::bytes() const { return t_traffic->bytes; }

void access(const void* address, std::size_t bytes, Access kind) {
  if (t_traffic) t_traffic->touch(address, bytes, kind);
  constexpr std::size_t kWidestAccess = 16;
  if (reinterpret_cast<std::uintptr_t>(address) % std::min(bytes, kWidestAccess) == 0) return;
  const Place& at = place();
  fmt::print(stderr, "Block ({}, {}), thread ({}, {}): an access of {} bytes at {}, which is not a multiple of it.\n",
             at.blockIdx.x, at.blockIdx.y, at.threadIdx.x, at.threadIdx.y, bytes, address);
  std::abort();  // an exception cannot leave a fiber
}

namespace {
std::atomic<std::size_t> mostSharedBytes = std::size_t{227} << 10U;
}  // namespace

std::size_t maxSharedBytes() { return mostSharedBytes; }
std::size_t setMaxSharedBytes(std::size_t bytes) { return mostSharedBytes.exchange(bytes); }

void runGrid(Dim3 grid, Dim3 block, const std::function<void()>& thread, std::size_t sharedBytes,
             unsigned clusterBlocks) {
  checkSize(grid, block);
  checkClusters(grid, clusterBlocks);
  static thread_local std::vector<std::unique_ptr<Fiber>> idle;
  Cluster runner(grid, block, thread, std::exchange(idle, {}));
  const CurrentCluster scope(runner);
  runBlocks(runner, grid, sharedBytes, clusterBlocks);
  if (t_traffic) t_traffic->endGrid();
  idle = std::move(runner).takeFibers();
}

unsigned lane() { return t_cluster->lane(); }

std::uint64_t exchange(std::uint64_t bits, unsigned source, std::source_location where) {
  Warp& warp = t_cluster->currentWarp();
  auto& slots = warp.slots[warp.numExchanges % 2];
  slots[lane()] = bits;
  t_cluster->wait(State::AtShuffle, where);
  return slots[source % kWarpSize];
}

}  // namespace fuseline::simt
