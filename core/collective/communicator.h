// Communicator: the collectives of one rank in a group. Implemented in process here, and by message-passing libraries.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/patience.h"
#include "core/tensor/dtype.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

enum class CollectiveKind { AllGather, ReduceScatter, AllReduce, Broadcast };
/// Sum: in float32, in rank order, rounded once. Max: exact; NaN is ignored.
enum class Reduction : std::uint8_t { Sum, Max };
/// Ranks: sums as defined above, with equal bits in every run. Library: those of a device's library, which may round
/// more often and in an order of its own, and may be faster.
enum class SumOrder { Library, Ranks };

/// "all-gather", "reduce-scatter", "all-reduce", "broadcast".
std::string_view collectiveName(CollectiveKind kind);

/// One tensor of a collective. count: elements that one rank contributes to an all-gather or receives from a
/// reduce-scatter; of the others all elements.
struct CollectivePart {
  DType dtype = DType::F32;
  std::int64_t count = 0;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  /// An all-gather's elements from the values of one rank to those of the next one, if others lie between; 0: count.
  std::int64_t rankStride = 0;

  std::int64_t strideBytes() const { return (rankStride > 0 ? rankStride : count) * sizeBytes(dtype); }
};

/// Bytes of the whole tensor: of all ranks together for an all-gather and a reduce-scatter.
std::int64_t wholeBytes(CollectiveKind kind, const CollectivePart& part, int ranks);

/// Bytes that every rank sends, and receives: wholeBytes times (P - 1) / P, twice for an all-reduce. Divided by the
/// time it is the bus bandwidth as the NCCL tests define it.
std::int64_t wireBytes(CollectiveKind kind, std::int64_t wholeBytes, int ranks);

/// Every rank of the group makes the same calls in the same order, with equal kinds, dtypes and counts.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllGather;
  Reduction reduction = Reduction::Sum;
  std::string_view name;  // of the step, for messages
  std::span<const CollectivePart> parts;
};

/// When a collective ran beside other work.
struct BesideSpan {
  std::chrono::steady_clock::time_point start = {};
  std::chrono::steady_clock::time_point end = {};
};

/// A rank or a library failed; the message names it. isConsequence: another rank failed first, and this one was
/// waiting for it.
struct CommunicationError : std::runtime_error {
  CommunicationError(const std::string& message, bool consequence)
      : std::runtime_error(message), isConsequence(consequence) {}
  bool isConsequence = false;
};

/// Used by one thread of its rank. All calls but abort() may throw CommunicationError.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Memory of the host: returns when `to` of every part is complete and `from` may be written again. Memory of a
  /// device: takes its turn among the rank's launches and does not wait. An all-reduce and a broadcast may be in place
  /// (`from` is `to`); a broadcast sends the tensor of rank 0.
  virtual void run(const Collective& collective) = 0;
  /// Starts a collective beside the rank's later work, until await(). There is no other collective between the two. The
  /// default is run().
  virtual void begin(const Collective& collective) { run(collective); }
  /// The rank's later work starts when the collective of begin() has ended. Throws what run() would.
  virtual void await() {}
  /// The last collective between begin() and await(). Nothing: it ran in begin(), or on a device.
  virtual std::optional<BesideSpan> besideSpan() const { return std::nullopt; }
  /// Returns when all ranks have called it.
  virtual void barrier() = 0;
  /// Ends the collectives of all ranks, present and later ones, with this sentence. The first call counts.
  virtual void abort(std::string_view reason) noexcept = 0;
  /// Facts for run files: library, version, algorithm.
  virtual std::vector<std::pair<std::string, std::string>> details() const = 0;
  /// Called for every collective of a plan before its first run(), while nothing is recorded. It may allocate memory.
  virtual void prepare(const Collective& /*collective*/) {}
  /// Does it hold on all ranks? Returns when all have called it. The default is an all-reduce of memory of the host.
  virtual bool agree(bool holds);
  /// How long a rank waits for others, before anything was waited for.
  virtual Patience patience() const { return Patience(); }
  /// Why the collectives have ended: the reason of abort(). Never waits. Nothing: they have not.
  virtual std::optional<std::string> failure() const { return std::nullopt; }
  /// This rank has failed: nothing of it takes part in a collective any more, so that its memory can be freed. abort()
  /// tells the others.
  virtual void leave() noexcept {}
};

}  // namespace fuseline
