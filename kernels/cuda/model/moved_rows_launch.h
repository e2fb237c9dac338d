// Launches of MoEPermute and MoEUnpermute: a stable sort of slots by expert, and copies and sums of rows that are named
// by number. Plain C++: the kernels are in moved_rows_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cuda {

/// Places slots by expert, then by number. An expert outside of 0 ... experts - 1 drops the slot.
struct SlotSort {
  const std::int64_t* experts = nullptr;  // [slots]
  std::int64_t slots = 0;
  std::int64_t numExperts = 0;
  std::int64_t alignSize = 1;  // the rows of an expert are rounded up to a multiple
  std::int64_t rows = 0;       // of all experts; those left over count as the last expert's

  std::int32_t* scratch = nullptr;     // slotSortScratch() integers
  std::int64_t* rowOfSlot = nullptr;   // [slots], -1: dropped; null: not wanted
  std::int64_t* splitSizes = nullptr;  // [numExperts]; null: not wanted
  std::int32_t* slotOfRow = nullptr;   // [rows], -1: none; null: not wanted
};

/// Scratch memory of a sort, in integers.
std::size_t slotSortScratch(std::int64_t slots, std::int64_t numExperts);
void launchSlotSort(const SlotSort& sort, Stream stream);
/// slotOfRow from a map of rows that are all different.
void launchSlotsOfRows(const std::int64_t* rowOfSlot, std::int64_t slots, std::int32_t* slotOfRow, std::int64_t rows,
                       Stream stream);

/// Rows of one width. A token has `terms` slots.
struct MovedRows {
  const void* from = nullptr;
  void* to = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t width = 0;
  std::int64_t rowsFrom = 0;
  std::int64_t rowsTo = 0;
  std::int64_t terms = 1;
  const void* factors = nullptr;  // of slots; null: all are 1
  device::Element factorElement = device::Element::F32;
  /// Added to sums: tensors like `to`, one of which may share its memory; null: nothing is added.
  const void* addends[2] = {};
};

/// to[row] = factors[slot] from[slot / terms] for the row's slot, rounded once; 0 where it has none.
void launchCopiedRows(const MovedRows& rows, const std::int32_t* slotOfRow, Stream stream);
/// to[token] = the sum over its slots of factors[slot] from[row of the slot], in float32 in the order of slots, plus
/// the addends, rounded once.
void launchRowSums(const MovedRows& rows, const std::int64_t* rowOfSlot, Stream stream);

/// dots[slot] = the dot product of a[slot / terms] and b[row of the slot]; 0 where there is none.
struct RowDots {
  const void* a = nullptr;
  const void* b = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t width = 0;
  std::int64_t slots = 0;
  std::int64_t terms = 1;
  std::int64_t rows = 0;  // of b
  const std::int64_t* rowOfSlot = nullptr;
  void* dots = nullptr;
  device::Element dotElement = device::Element::F32;
};
void launchRowDots(const RowDots& dots, Stream stream);

}  // namespace fuseline::cuda
