// Launches that quantize tensors with one scale, and update the scales. Plain C++: the kernels are in
// quantize_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/program.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/stream/stream.h"

#include <cstdint>
#include <span>

namespace fuseline::cuda {

/// x: [rows, cols]. The rowwise quantized tensor has x's orientation, the columnwise one is transposed.
struct TensorQuantization {
  const void* x = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  device::CodedCopy rowwise;
  device::CodedCopy columnwise;
  const float* scale = nullptr;  // delayed scaling; null: computed from the amax
  const float* amax = nullptr;   // of x, if there is no scale
  float* raised = nullptr;       // with a scale: updated with the largest magnitude of x; null: not requested
};
/// tensors: all with the same element type.
void launchQuantize(std::span<const TensorQuantization> tensors, Stream stream);

/// 1 / *scale for a quantized tensor, and perhaps for its transpose. scale null: they are written elsewhere.
struct InverseScales {
  const float* scale = nullptr;
  float* first = nullptr;
  float* second = nullptr;
};
void launchInvertScale(const InverseScales& inverses, Stream stream);

/// to: [cols, rows], the transpose of `codes`, [rows, cols], with a number of columns that is a multiple of 8.
struct CodeTransposition {
  const std::uint8_t* codes = nullptr;
  std::uint8_t* to = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  InverseScales inverses = {};
};
void launchTransposeCodes(const CodeTransposition& transposition, Stream stream);

/// Copies a scale to one or two others. second: may be null.
void launchCopyScale(const float* scale, float* first, float* second, Stream stream);

/// Writes a few values that the host knows, passed by value: no copy to wait for.
void launchWrite(std::span<const std::int64_t> values, std::int64_t* to, Stream stream);

/// out[i] = decoded codes[i] times *inverseScale, rounded once to the element type.
struct TensorDequantization {
  const std::uint8_t* codes = nullptr;
  const float* inverseScale = nullptr;
  device::FloatCode code = device::FloatCode::E4M3;
  void* out = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t elements = 0;
};
void launchDequantize(const TensorDequantization& dequantization, Stream stream);

/// Raises *amax, which is not negative, to the largest magnitude of x. NaN does not count.
struct AmaxSearch {
  const void* x = nullptr;
  device::Element element = device::Element::F32;
  std::int64_t elements = 0;
  float* amax = nullptr;
};
void launchAmax(std::span<const AmaxSearch> tensors, int numMultiprocessors, Stream stream);
/// All values are 0 afterwards.
void launchClear(std::span<const std::span<float>> values, Stream stream);

/// The states of several tensors. history: the amax of this step, then of earlier ones, the oldest first.
struct ScaleUpdates {
  static constexpr int kMaxStates = 64;
  float* scales[kMaxStates] = {};
  float* histories[kMaxStates] = {};
  float scaledLargest[kMaxStates] = {};  // the largest finite code over 2^margin
  int count = 0;
  int historyLength = 0;
  bool takesMostRecent = false;  // otherwise the largest of the history
};
void launchScaleUpdates(const ScaleUpdates& updates, Stream stream);

}  // namespace fuseline::cuda
