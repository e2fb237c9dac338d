// Runs device code on the CPU: the threads of a block are fibers, which switch at barriers and shuffles.
// SPDX-License-Identifier: Apache-2.0
// Blocks, or clusters of them, run one after the other, and a thread runs until it waits: results are the same in every
// run. Behavior that would hang a device or that it leaves undefined (a barrier that not all threads of the block
// reach) is an exception. Work that a device may do in any order is done in another order if a test requests it: a
// kernel that lacks a barrier then gives other results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <vector>

namespace fuseline::simt {

/// As CUDA's dim3.
struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  // Implicit, because CUDA's own is.
  constexpr Dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// Indices of the running thread.
struct Place {
  Dim3 threadIdx;
  Dim3 blockIdx;
  Dim3 blockDim;
  Dim3 gridDim;
};

constexpr unsigned kWarpSize = 32;

/// The sentence names the threads and the lines at which they wait.
class DivergenceError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Maximum shared memory that a launch may request, in bytes: that of a Hopper's block until a test sets it.
std::size_t maxSharedBytes();
/// Returns the former value.
std::size_t setMaxSharedBytes(std::size_t bytes);

/// Runs `thread` once for every thread of the grid; sharedBytes: of dynamicShared(). clusterBlocks: neighbors in x that
/// run together. Throws DivergenceError; std::invalid_argument for a grid that a device would refuse.
void runGrid(Dim3 grid, Dim3 block, const std::function<void()>& thread, std::size_t sharedBytes = 0,
             unsigned clusterBlocks = 1);

/// Order of turns: of a block's threads that can continue, and of a grid's blocks.
enum class Turns : std::uint8_t { Ascending, Descending, Random };

/// On this thread, while it lives, grids run with these turns; otherwise ascending ones.
class TurnsInScope {
 public:
  explicit TurnsInScope(Turns turns, std::uint64_t seed = 0);
  ~TurnsInScope();
  TurnsInScope(const TurnsInScope&) = delete;
  TurnsInScope& operator=(const TurnsInScope&) = delete;
};

/// Work that the host submits to a device, on its own stream (null) or another one: runs now, or is added to the
/// recording that this thread makes, or waits until the stream is joined. Throws std::logic_error on a stream that is
/// not forked.
void submit(const void* stream, std::function<void()> work);

/// Receives the submitted work instead of the harness, on every thread: for a test device that has streams itself.
using Submitter = std::function<void(const void* stream, std::function<void()> work)>;
void setSubmitter(Submitter submitter);

/// Streams in addition to a device's own. When they are joined, their work runs in a permitted but unfavorable order: a
/// piece of every stream in turn, the last stream first.
class SideStreams {
 public:
  explicit SideStreams(std::size_t count);
  ~SideStreams();
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;
  const void* at(std::size_t stream) const;
  void fork(std::size_t count);
  void join(std::size_t count);

 private:
  friend void submit(const void* stream, std::function<void()> work);
  struct Stream;
  std::vector<std::unique_ptr<Stream>> m_streams;
};

/// Wraps the work that this thread submits, in a recording, too.
using Wrapper = std::function<std::function<void()>(std::function<void()>)>;
/// For this thread; an empty one: nothing does.
void setWrapper(Wrapper wrapper);
/// Calls `launches`; the submitted work is returned instead of run.
std::vector<std::function<void()>> record(const std::function<void()>& launches);
/// Does this thread make a recording?
bool isRecording();

/// Indices of the running thread.
const Place& place();
/// __syncthreads()
void syncThreads(std::source_location where);
/// The barrier of all blocks of a cluster.
void syncCluster(std::source_location where);
/// Passes `bits` to the other lanes of the warp and returns those of the lane `source`; all of the warp's lanes in the
/// block must call it.
std::uint64_t exchange(std::uint64_t bits, unsigned source, std::source_location where);
/// The shared memory requested at the launch: NaN until it is written, and when the block has ended. Declared shared
/// memory is one for all blocks of a cluster: their kernels must not have any.
float* dynamicShared();
/// The same place in the dynamic shared memory of another block of the cluster; rank: among its blocks.
const void* sharedOfBlock(unsigned rank, const void* address);
enum class Access : std::uint8_t { Read, Write };
/// A packet of this number of bytes is read or written. Ends the program with a message if the address is invalid for
/// such an access, as a device ends a kernel.
void access(const void* address, std::size_t bytes, Access kind);

/// While it lives, the packets that this thread's grids read and write are counted. A grid finds in the cache the data
/// that it has touched before; the next grid does not.
class CountedTraffic {
 public:
  CountedTraffic();
  ~CountedTraffic();
  CountedTraffic(const CountedTraffic&) = delete;
  CountedTraffic& operator=(const CountedTraffic&) = delete;
  /// In sectors of memory, which a device always moves as a whole.
  std::uint64_t bytes() const;
};
/// The lane of the running thread in its warp.
unsigned lane();

}  // namespace fuseline::simt
