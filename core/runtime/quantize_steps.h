// The steps that a recipe adds to a plan, on the host: the reference for every backend's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantizer.h"
#include "core/runtime/backend.h"

#include <memory>
#include <span>

namespace fuseline {

/// Where the pointers of a "quantize" step stand among its operands; -1: it has none.
struct QuantizeOperands {
  int source = -1;
  int rowwise = -1;
  int columnwise = -1;
  int scale = -1;
  int history = -1;

  explicit QuantizeOperands(const Step& step);
};

/// The seed and the name of the tensor; the scale too where the step has one.
QuantizerInputs quantizerInputs(const Graph& graph, const Step& step, const QuantizeOperands& operands,
                                std::span<std::byte* const> pointers);

/// Raises the amax of the step at hand. NaN is ignored.
void recordAmax(std::byte* history, float amax);

/// Through core/quant, element by element.
std::unique_ptr<Kernel> makeQuantizeReference(const Graph& graph, const Plan& plan, const Step& step);

/// Kernel "delayed_scaling_update": at most thousands of floats, so that no device needs a faster one.
std::unique_ptr<Kernel> makeScaleUpdate(const Plan& plan, const Step& step);

}  // namespace fuseline
