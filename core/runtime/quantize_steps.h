// The steps that a recipe adds to a plan, on the host: the reference for every backend's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantizer.h"
#include "core/runtime/backend.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// Where the pointers of one work stand among the operands of its step; -1: it has none.
struct QuantizeOperands {
  int source = -1;  // a step that makes it may not store it
  int rowwise = -1;
  int columnwise = -1;
  int scale = -1;  // of the first group; the others follow in pairs with their histories
  int history = -1;
  int sizes = -1;      // of groups
  int knownAmax = -1;  // what an earlier step found
  int foundAmax = -1;  // what this step finds for a later one

  QuantizeOperands(const Step& step, const QuantizeWork& work);
};

/// How many rows each group has that the op quantizes by itself. They are what a user gave. Throws std::runtime_error
/// with a sentence where they do not divide the rows, or do not fit the scaling.
void checkGroupSizes(const Node& node, std::span<const std::int64_t> sizes, std::int64_t rows, Scaling scaling);

/// What a work quantizes as one: the whole tensor, or a group of it; of a copy with numGroups groups, 0 for none.
std::string pieceName(const Node& reader, const QuantizeWork& work, std::int64_t numGroups, std::int64_t piece);

/// A group of rows, or a whole tensor, and what is to be made of it. Pointers are null where there is nothing.
struct QuantizePiece {
  TensorSpec source;
  const std::byte* from = nullptr;
  TensorSpec rowwise, columnwise;  // of the copies that the step has
  std::byte* rowwiseMemory = nullptr;
  std::byte* columnwiseMemory = nullptr;
  std::byte* history = nullptr;
  /// The seed and the name of the tensor; the scale or the amax too where the step has one.
  QuantizerInputs inputs;
};

/// What one work of a step has to do in one call: one piece without groups. Writes the sizes of groups into their
/// copies. Throws std::runtime_error with a sentence where the sizes do not divide the rows, or do not fit the scaling.
std::vector<QuantizePiece> quantizePieces(const Graph& graph, const Plan& plan, const Step& step,
                                          const QuantizeWork& work, std::span<std::byte* const> pointers);

/// What a work of a step that makes x does besides, through core/quant: its copies, or its amax.
void handOverReference(const Graph& graph, const Plan& plan, const Step& step, const QuantizeWork& work,
                       const Tensor& x, std::span<std::byte* const> pointers);

/// Raises the amax of the step at hand. NaN is ignored.
void recordAmax(std::byte* history, float amax);

/// Makes the copies of x through core/quant, element by element.
void quantizeReference(const TensorQuantizers& quantizers, const Tensor& x, const QuantizePiece& piece);

/// The kernel "quantize" by means of it.
std::unique_ptr<Kernel> makeQuantizeReference(const Graph& graph, const Plan& plan, const Step& step);

/// Kernel "delayed_scaling_update": at most thousands of floats, so that no device needs a faster one.
std::unique_ptr<Kernel> makeScaleUpdate(const Plan& plan, const Step& step);

}  // namespace fuseline
