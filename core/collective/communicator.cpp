// Names and sizes of collectives.
// SPDX-License-Identifier: Apache-2.0
#include "core/collective/communicator.h"

namespace fuseline {

std::string_view collectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllGather: return "all-gather";
    case CollectiveKind::ReduceScatter: return "reduce-scatter";
    case CollectiveKind::AllReduce: return "all-reduce";
    case CollectiveKind::Broadcast: return "broadcast";
  }
  return "";
}

std::int64_t wholeBytes(CollectiveKind kind, const CollectivePart& part, int ranks) {
  const bool isShared = kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter;
  return part.count * sizeBytes(part.dtype) * (isShared ? ranks : 1);
}

std::int64_t wireBytes(CollectiveKind kind, std::int64_t wholeBytes, int ranks) {
  if (kind == CollectiveKind::Broadcast) return ranks > 1 ? wholeBytes : 0;
  const std::int64_t once = wholeBytes * (ranks - 1) / ranks;
  return kind == CollectiveKind::AllReduce ? 2 * once : once;
}

bool Communicator::agree(bool holds) {
  const float mine = holds ? 0.0F : 1.0F;
  float largest = 0.0F;
  const CollectivePart part{.dtype = DType::F32,
                            .count = 1,
                            .from = reinterpret_cast<const std::byte*>(&mine),
                            .to = reinterpret_cast<std::byte*>(&largest)};
  run({.kind = CollectiveKind::AllReduce, .reduction = Reduction::Max, .name = "agreement", .parts = {&part, 1}});
  return largest == 0.0F;
}

}  // namespace fuseline
