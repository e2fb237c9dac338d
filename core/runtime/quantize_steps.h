// The steps that a recipe adds to a plan, on the host: the reference for every backend's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantizer.h"
#include "core/runtime/backend.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// Indices of one work's pointers among the operands of its step; -1: it has none.
struct QuantizeOperands {
  int source = -1;  // a step that produces it may not store it
  int rowwise = -1;
  int columnwise = -1;
  int scale = -1;  // of the first group; the others follow in pairs with their histories
  int history = -1;
  int sizes = -1;      // of groups
  int knownAmax = -1;  // found by an earlier step
  int foundAmax = -1;  // found by this step for a later one
  int knownTransformedAmax = -1;
  int foundTransformedAmax = -1;
  bool raisesFoundAmax = false;  // an earlier piece of the step found one, too

  QuantizeOperands(const Step& step, const QuantizeWork& work);
};

/// Checks the number of rows of each group that the op quantizes separately. They come from the user. Throws
/// std::runtime_error with a sentence if they do not divide the rows, or do not fit the GEMM that reads the quantized
/// tensor. copy: its spec.
void checkGroupSizes(const Node& node, std::span<const std::int64_t> sizes, std::int64_t rows, const TensorSpec& copy);

/// Name of a unit of quantization: the whole tensor, or a group of it; numGroups 0: no groups.
std::string pieceName(const Node& reader, const QuantizeWork& work, std::int64_t numGroups, std::int64_t piece);

/// A group of rows, or a whole tensor, and the tensors to produce from it. Null pointers: not requested.
struct QuantizePiece {
  TensorSpec source;
  std::int64_t firstRow = 0;  // in the whole tensor
  const std::byte* from = nullptr;
  TensorSpec rowwise, columnwise;  // of the requested quantized tensors
  std::byte* rowwiseMemory = nullptr;
  std::byte* columnwiseMemory = nullptr;
  std::byte* history = nullptr;
  /// The seed and the name of the tensor; the scale or the amax too where the step has one.
  QuantizerInputs inputs;
};

/// The quantization of one work of a step in one call: one piece without groups. Writes the sizes of groups into their
/// quantized tensors. Throws std::runtime_error with a sentence if the sizes do not divide the rows, or do not fit the
/// scaling.
std::vector<QuantizePiece> quantizePieces(const Graph& graph, const Plan& plan, const Step& step,
                                          const QuantizeWork& work, std::span<std::byte* const> pointers);

/// Whether one scale serves all works of the step: those of x, k and v of an attention.
bool haveOneScale(const Graph& graph, const Step& step);

/// The largest amax of all works, if they have one scale. amaxOf: that of a tensor.
std::optional<float> commonAmax(const Graph& graph, const Step& step, std::span<std::byte* const> pointers,
                                const std::function<float(const std::byte* x, const TensorSpec& spec)>& amaxOf);

/// Fused quantization of a step that computes x, through core/quant: its quantized tensors, by group, or its amax.
void fusedOperandReference(const Graph& graph, const Plan& plan, const Step& step, const QuantizeWork& work,
                           const Tensor& x, std::span<std::byte* const> pointers);

/// Updates the amax of the current step. NaN is ignored.
void recordAmax(std::byte* history, float amax);

/// Quantizes x through core/quant, element by element.
void quantizeReference(const TensorQuantizers& quantizers, const Tensor& x, const QuantizePiece& piece);

/// The kernel "quantize" by means of it.
std::unique_ptr<Kernel> makeQuantizeReference(const Graph& graph, const Plan& plan, const Step& step);

/// Offset of the scale of a whole quantized tensor, or of its amax if blocks have scales. Requires one.
std::int64_t tensorScaleOffset(const TensorSpec& copy);

/// The operands of kernel "gathered_codes", by index. The encoded values of `whole`, which all ranks sent, are there;
/// its scale is that of this rank's rows. columnwise: its transpose; -1: not requested.
struct GatheredCodesOperands {
  int rows = -1;
  int whole = -1;
  int columnwise = -1;

  explicit GatheredCodesOperands(const Step& step);
};

/// from: [rows, cols] bytes; to: [cols, rows].
using TransposeBytes = void (*)(const std::uint8_t* from, std::int64_t rows, std::int64_t cols, std::uint8_t* to);
/// Tile by tile, on one thread.
void transposeBytes(const std::uint8_t* from, std::int64_t rows, std::int64_t cols, std::uint8_t* to);

/// Kernel "gathered_codes" on the host.
std::unique_ptr<Kernel> makeGatheredCodes(const Plan& plan, const Step& step,
                                          TransposeBytes transpose = transposeBytes);

/// The operands of kernel "gathered_columns", by index: what all ranks sent of their columnwise tensors, the values of
/// all ranks in front of their scales; this rank's tensor, for the amax; and the columnwise tensor of all rows.
struct GatheredColumnsOperands {
  int sent = -1;
  int rows = -1;
  int whole = -1;

  explicit GatheredColumnsOperands(const Step& step);
};

/// Lines of bytes that the ranks sent one after another, [ranks, count, bytes], and that belong beside each other,
/// [count, ranks, bytes].
struct SentLines {
  std::int64_t from = 0;  // offset in what was sent
  std::int64_t to = 0;    // offset in the whole tensor
  std::int64_t count = 0;
  std::int64_t bytes = 0;
};
/// Values and scales. rows: the tensor of one rank.
std::array<SentLines, 2> sentLines(const TensorSpec& rows, const TensorSpec& whole);

/// Kernel "gathered_columns" on the host.
std::unique_ptr<Kernel> makeGatheredColumns(const Plan& plan, const Step& step);

/// Kernel "delayed_scaling_update": at most thousands of floats, so that no device needs a faster one.
std::unique_ptr<Kernel> makeScaleUpdate(const Plan& plan, const Step& step);

}  // namespace fuseline
