// Lays out the quantized tensors of groups: their sizes, then one tensor after the other.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/grouped_copy.h"

#include "core/tensor/scaling.h"

#include <cassert>
#include <cstring>

namespace fuseline {

namespace {

/// Copies begin at cache lines.
constexpr std::int64_t kAlignment = 64;
/// A group's own scale and amax, and the gaps in front of its scales, its amax and the next copy.
constexpr std::int64_t kMostBytesBeside = 4 * kAlignment;

std::int64_t sizesBytes(const TensorSpec& copy) {
  return roundedUp(copy.quantized->numGroups * static_cast<std::int64_t>(sizeof(std::int64_t)), kAlignment);
}

/// A group may end within a block, and within the padding of scales: both fill up to what a single row needs.
/// The same holds for amaxes of rows.
std::int64_t paddingBytes(const TensorSpec& copy) {
  const CopyParts parts = partsOf({copy.dtype, {1, copy.cols()}, copy.quantized});
  if (copy.quantized->scaling == Scaling::NvRow1x16) return 4 * parts.numAmaxes;
  return isOfBlocksOf128(copy.quantized->scaling) ? parts.scalesBytes : 0;
}

}  // namespace

std::vector<GroupCopy> groupCopies(const TensorSpec& copy, std::span<const std::int64_t> sizes) {
  if (copy.quantized->numGroups == 0) return {{.firstRow = 0, .spec = copy, .offset = 0}};
  std::vector<GroupCopy> groups;
  std::int64_t row = 0;
  std::int64_t offset = sizesBytes(copy);
  for (const std::int64_t size : sizes) {
    GroupCopy group{.firstRow = row, .spec = {copy.dtype, {size, copy.cols()}, copy.quantized}, .offset = offset};
    group.spec.quantized->numGroups = 0;
    row += size;
    offset += roundedUp(group.spec.bytes(), kAlignment);
    groups.push_back(std::move(group));
  }
  assert(offset <= copy.bytes());
  return groups;
}

std::vector<GroupCopy> groupCopies(const TensorSpec& copy, const std::byte* memory) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(copy.quantized->numGroups));
  if (!sizes.empty()) std::memcpy(sizes.data(), memory, sizes.size() * sizeof(std::int64_t));
  return groupCopies(copy, sizes);
}

void writeGroupSizes(const TensorSpec& copy, std::span<const std::int64_t> sizes, std::byte* memory) {
  if (copy.quantized->numGroups > 0) std::memcpy(memory, sizes.data(), sizes.size_bytes());
}

std::int64_t groupedCopyBytes(const TensorSpec& copy) {
  const CopyParts parts = partsOf(copy);
  const std::int64_t amaxBytes = copy.quantized->scaling == Scaling::NvRow1x16 ? 4 * parts.numAmaxes : 0;
  return sizesBytes(copy) + parts.codesBytes + parts.scalesBytes + amaxBytes +
         copy.quantized->numGroups * (kMostBytesBeside + paddingBytes(copy));
}

}  // namespace fuseline
