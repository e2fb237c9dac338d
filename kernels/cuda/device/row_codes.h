// Fused quantization by threads that have whole rows of a result: its amax, or rowwise quantized values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/amax.h"
#include "kernels/cuda/device/block_codes.h"
#include "kernels/cuda/device/norm_data.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// The amax of a result of the element type.
class RowAmax {
 public:
  /// amax null: not requested
  __device__ RowAmax(Element element, float* amax) : m_element(element), m_amax(amax) {}

  template <int kVector>
  __device__ void take(std::int64_t, std::int64_t, bool isInside, const float (&values)[kVector]) {
    if (m_amax && isInside) m_largest = largestMagnitude<kVector>(m_element, values, kVector, m_largest);
  }

  /// All threads of the block call it, when they have taken everything.
  template <int kThreads>
  __device__ void finish(int thread) const {
    if (m_amax) raiseAmax<kThreads>(m_amax, m_largest, thread);
  }

 private:
  Element m_element;
  float* m_amax;
  float m_largest = 0.0f;
};

/// The rowwise quantized tensors, with scales of the tensor or of lines, and the scale of a columnwise tensor with one
/// scale. Its values are written elsewhere.
class RowCodes {
 public:
  /// element: type of the result, to which it is first rounded, if at all. The result has `cols` columns, a multiple of
  /// 8.
  __device__ RowCodes(Element element, std::int64_t cols, const QuantizedOutputs& quantizedOutputs)
      : m_element(element), m_cols(cols), m_quantizedOutputs(quantizedOutputs) {}

  /// Adjacent threads of a row call it together, with adjacent packets; packets beyond the end are zeros.
  __device__ void take(std::int64_t row, std::int64_t col, bool isInside, const float (&values)[kPatch]) {
    float stored[kPatch];
#pragma unroll
    for (int v = 0; v < kPatch; ++v) stored[v] = values[v];
    if (!m_quantizedOutputs.isUnrounded) roundTo(m_element, stored);
    const float largest = largestOfRow(stored);
    m_largest = largerOf(largest, m_largest);
    const Place place{row, col, isInside};
#pragma unroll 1
    for (int i = 0; i < m_quantizedOutputs.numPairs; ++i) write(m_quantizedOutputs.pairs[i], place, stored, largest);
  }

  /// All threads of the block call it, when they have taken everything.
  template <int kThreads>
  __device__ void finish(int thread) const {
    if (!m_quantizedOutputs.pairs[0].amax) return;  // all have one, or none
    const float largest = largestOfBlock<kThreads>(m_largest, thread);
#pragma unroll 1
    for (int i = 0; i < m_quantizedOutputs.numPairs; ++i)
      if (float* const amax = m_quantizedOutputs.pairs[i].amax) raiseTo(amax, largest, thread);
  }

 private:
  struct Place {
    std::int64_t row;
    std::int64_t col;
    bool isInside;
  };

  __device__ void write(const CopyPair& pair, const Place& place, const float (&stored)[kPatch], float largest) const {
    float multipliers[kPatch];
    fill<kPatch>(multiplierOf(pair, place, largest), multipliers);
    if (!place.isInside) return;
    std::uint8_t* const to = pair.rowwise.codes + place.row * m_cols + place.col;
    FUSELINE_WRITES(to, sizeof(CodePacket));
    *reinterpret_cast<CodePacket*>(to) = encodePacket(stored, multipliers, pair.rowwise.code);
  }

  __device__ float multiplierOf(const CopyPair& pair, const Place& place, float largest) const {
    switch (m_quantizedOutputs.kind) {
      case CopyKind::Float8Line: return ofBlock<kFloat8Block, false>(pair.rowwise, place, largest);
      case CopyKind::MxLine: return ofBlock<kMxBlock, true>(pair.rowwise, place, largest);
      default: return ofTensor(pair, place);
    }
  }

  static __device__ float ofTensor(const CopyPair& pair, const Place& place) {
    const float scale = *pair.scale;
    if (place.row == 0 && place.col == 0) {
      *static_cast<float*>(pair.rowwise.scales) = 1.0f / scale;
      if (pair.columnwise.codes) *static_cast<float*>(pair.columnwise.scales) = 1.0f / scale;
    }
    return scale;
  }

  template <int kBlock, bool kIsE8m0>
  static __device__ float ofBlock(const CodedCopy& copy, const Place& place, float largest) {
    constexpr int kLanes = kBlock / kPatch;
    const bool isWriter = place.isInside && threadIdx.x % kLanes == 0;
    return scaleBlock<kIsE8m0>(copy, largestOverLanes(largest, kLanes), place.row, place.col / kBlock, isWriter);
  }

  Element m_element;
  std::int64_t m_cols;
  const QuantizedOutputs& m_quantizedOutputs;
  float m_largest = 0.0f;
};

}  // namespace fuseline::cuda::device
