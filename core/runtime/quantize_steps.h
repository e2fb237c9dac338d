// The steps that a recipe adds to a plan, on the host: the reference for every backend's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantizer.h"
#include "core/runtime/backend.h"

#include <memory>
#include <span>

namespace fuseline {

/// Where the pointers of one work stand among the operands of its step; -1: it has none.
struct QuantizeOperands {
  int source = -1;  // a step that makes it may not store it
  int rowwise = -1;
  int columnwise = -1;
  int scale = -1;
  int history = -1;

  QuantizeOperands(const Step& step, const QuantizeWork& work);
};

/// The seed and the name of the tensor; the scale too where the step has one.
QuantizerInputs quantizerInputs(const Graph& graph, const QuantizeWork& work, const QuantizeOperands& operands,
                                std::span<std::byte* const> pointers);

/// Raises the amax of the step at hand. NaN is ignored.
void recordAmax(std::byte* history, float amax);

/// Makes the copies of one tensor through core/quant, element by element.
class QuantizeReference {
 public:
  QuantizeReference(const Graph& graph, const Plan& plan, const Step& step, const QuantizeWork& work);
  void run(const Tensor& x, std::span<std::byte* const> pointers) const;

 private:
  void make(const Tensor& x, const QuantizerSpec& quantizer, const QuantizerInputs& inputs, int copy,
            std::span<std::byte* const> pointers) const;

  const Graph& m_graph;
  const Plan& m_plan;
  const Step& m_step;
  const QuantizeWork& m_work;
  QuantizeOperands m_operands;
};

/// The kernel "quantize" by means of it.
std::unique_ptr<Kernel> makeQuantizeReference(const Graph& graph, const Plan& plan, const Step& step);

/// Kernel "delayed_scaling_update": at most thousands of floats, so that no device needs a faster one.
std::unique_ptr<Kernel> makeScaleUpdate(const Plan& plan, const Step& step);

}  // namespace fuseline
