// Fibers for the threads of a block, and the rules of barriers and warps.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt/simt.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <ucontext.h>

namespace fuseline::simt {

namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr unsigned kMaxBlockThreads = 1024;
constexpr unsigned kMaxGridHeight = 65535;

class Block;
/// The block whose thread runs; grids do not nest.
thread_local Block* t_block = nullptr;

enum class State { NotStarted, Ready, AtBarrier, AtShuffle, Finished };

struct Thread {
  State state = State::NotStarted;
  std::source_location where;  // of the wait
};

/// The slots of one warp. Two sets take turns: a lane that is ahead by one exchange cannot overwrite what is read.
struct Warp {
  std::array<std::array<std::uint64_t, kWarpSize>, 2> slots = {};
  unsigned numExchanges = 0;
};

struct Fiber {
  ucontext_t context = {};
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStackBytes);
  unsigned thread = 0;
};

std::string describe(const std::source_location& where) {
  const std::string path = where.file_name();
  return fmt::format("{}:{}", path.substr(path.rfind('/') + 1), where.line());
}

bool isSamePlace(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() && describe(a) == describe(b);
}

/// One fiber suffices for threads that never wait; every thread that waits keeps its own.
class Block {
 public:
  Block(Dim3 grid, Dim3 block, const std::function<void()>& body)
      : m_body(body), m_place{.threadIdx = {}, .blockIdx = {}, .blockDim = block, .gridDim = grid} {}

  void run(Dim3 blockIdx) {
    m_place.blockIdx = blockIdx;
    const auto count = static_cast<unsigned>(m_place.blockDim.count());
    m_threads.assign(count, Thread{});
    m_warps.assign((count + kWarpSize - 1) / kWarpSize, Warp{});
    m_fiberOf.assign(count, nullptr);
    m_free.clear();
    for (const auto& fiber : m_fibers) m_free.push_back(fiber.get());
    m_numFinished = 0;
    while (m_numFinished < count) resume(nextThread());
  }

  const Place& place() const { return m_place; }
  unsigned current() const { return m_current; }

  void wait(State state, std::source_location where) {
    m_threads[m_current] = {state, where};
    state == State::AtBarrier ? releaseBarrier() : releaseWarp(m_current / kWarpSize);
    suspend();
  }

  Warp& warp() { return m_warps[m_current / kWarpSize]; }

  /// Threads one after the other, on this fiber, as long as none of them waits.
  void runThreads() {
    for (;;) {
      m_body();
      m_threads[m_current].state = State::Finished;
      ++m_numFinished;
      m_free.push_back(m_running);
      suspend();
    }
  }

 private:
  unsigned nextThread() {
    const auto ready = std::ranges::find(m_threads, State::Ready, &Thread::state);
    if (ready != m_threads.end()) return static_cast<unsigned>(ready - m_threads.begin());
    const auto fresh = std::ranges::find(m_threads, State::NotStarted, &Thread::state);
    if (fresh != m_threads.end()) return static_cast<unsigned>(fresh - m_threads.begin());
    throw DivergenceError(explainStandstill());
  }

  std::string explainStandstill() const {
    const auto isWaiting = [](const Thread& t) { return t.state == State::AtBarrier || t.state == State::AtShuffle; };
    const auto waiting = std::ranges::find_if(m_threads, isWaiting);
    const auto other = std::ranges::find_if(
        m_threads, [&](const Thread& t) { return t.state != waiting->state || !isSamePlace(t.where, waiting->where); });
    return fmt::format("Block ({}, {}, {}): thread {} waits at {}, but thread {} {}.", m_place.blockIdx.x,
                       m_place.blockIdx.y, m_place.blockIdx.z, waiting - m_threads.begin(), describe(waiting->where),
                       other - m_threads.begin(),
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
    const auto count = static_cast<unsigned>(m_threads.size());
    if (m_current + 1 < count && m_threads.back().state == State::NotStarted) return;
    if (areTogether(0, count, State::AtBarrier)) release(0, count);
  }

  void releaseWarp(unsigned index) {
    const unsigned first = index * kWarpSize;
    const unsigned last = std::min(first + kWarpSize, static_cast<unsigned>(m_threads.size()));
    if (!areTogether(first, last, State::AtShuffle)) return;
    ++m_warps[index].numExchanges;
    release(first, last);
  }

  void resume(unsigned thread) {
    if (!m_fiberOf[thread]) m_fiberOf[thread] = takeFiber(thread);
    m_running = m_fiberOf[thread];
    m_current = thread;
    m_threads[thread].state = State::Ready;
    m_place.threadIdx = indexOf(thread);
    swapcontext(&m_scheduler, &m_running->context);
  }

  void suspend() {
    Fiber& self = *m_running;
    swapcontext(&self.context, &m_scheduler);
  }

  Dim3 indexOf(unsigned thread) const {
    const Dim3& dim = m_place.blockDim;
    return {thread % dim.x, thread / dim.x % dim.y, thread / dim.x / dim.y};
  }

  Fiber* takeFiber(unsigned thread) {
    if (m_free.empty()) addFiber();
    Fiber* const fiber = m_free.back();
    m_free.pop_back();
    fiber->thread = thread;
    return fiber;
  }

  void addFiber() {
    m_fibers.push_back(std::make_unique<Fiber>());
    Fiber& fiber = *m_fibers.back();
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    makecontext(
        &fiber.context, [] { t_block->runThreads(); }, 0);
    m_free.push_back(&fiber);
  }

  const std::function<void()>& m_body;
  Place m_place;
  ucontext_t m_scheduler = {};
  std::vector<std::unique_ptr<Fiber>> m_fibers;
  std::vector<Fiber*> m_free;
  std::vector<Fiber*> m_fiberOf;  // by thread
  std::vector<Thread> m_threads;
  std::vector<Warp> m_warps;
  Fiber* m_running = nullptr;
  unsigned m_current = 0;
  unsigned m_numFinished = 0;
};

void checkSize(Dim3 grid, Dim3 block) {
  const bool fits = block.count() <= kMaxBlockThreads && grid.y <= kMaxGridHeight && grid.z <= kMaxGridHeight;
  if (fits && grid.count() > 0 && block.count() > 0) return;
  throw std::invalid_argument(fmt::format("No device takes a grid of ({}, {}, {}) blocks of ({}, {}, {}) threads.",
                                          grid.x, grid.y, grid.z, block.x, block.y, block.z));
}

void runBlocks(Block& runner, Dim3 grid) {
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) runner.run({x, y, z});
}

/// Ends with the scope, also by an exception.
class CurrentBlock {
 public:
  explicit CurrentBlock(Block& block) { t_block = &block; }
  ~CurrentBlock() { t_block = nullptr; }
  CurrentBlock(const CurrentBlock&) = delete;
  CurrentBlock& operator=(const CurrentBlock&) = delete;
};

}  // namespace

void runGrid(Dim3 grid, Dim3 block, const std::function<void()>& thread) {
  checkSize(grid, block);
  Block runner(grid, block, thread);
  const CurrentBlock scope(runner);
  runBlocks(runner, grid);
}

const Place& place() { return t_block->place(); }

void syncThreads(std::source_location where) { t_block->wait(State::AtBarrier, where); }

unsigned lane() { return t_block->current() % kWarpSize; }

std::uint64_t exchange(std::uint64_t bits, unsigned source, std::source_location where) {
  Warp& warp = t_block->warp();
  auto& slots = warp.slots[warp.numExchanges % 2];
  slots[lane()] = bits;
  t_block->wait(State::AtShuffle, where);
  return slots[source % kWarpSize];
}

}  // namespace fuseline::simt
