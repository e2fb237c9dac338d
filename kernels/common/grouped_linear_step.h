// Steps of GroupedLinear.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/grouped_programs.h"
#include "core/runtime/step_operand.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace fuseline {

/// x: [rows, K], y: [rows, N].
struct GroupedSize {
  std::int64_t rows = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t numGroups = 1;
};

/// Where a row of the operand begins.
inline std::byte* rowOf(const Binding& binding, Pointers pointers, std::int64_t row) {
  return binding.at(pointers) + row * binding.spec.cols() * sizeBytes(binding.spec.dtype);
}

/// Row's value of an operand with one value per row; nullptr: absent.
inline std::byte* valueOf(const Binding& binding, Pointers pointers, std::int64_t row) {
  return binding ? binding.at(pointers) + row * sizeBytes(binding.spec.dtype) : nullptr;
}

/// A parameter of the groups, or its gradient. Slots may be absent.
class GroupedOperand {
 public:
  GroupedOperand(const StepRequest& request, OperandKind kind, const GroupedParameter& parameter);

  bool isPresent() const { return static_cast<bool>(any()); }
  /// The first one that is present: they are all alike. Absent if there is none.
  Binding any() const;
  /// f32 if there is none.
  DType dtype() const { return any().spec.dtype; }
  /// nullptr: absent.
  std::byte* at(Pointers pointers, std::size_t group) const;

 private:
  bool m_isSingle;
  std::vector<Binding> m_bindings;
};

/// Has the operand of a step the same value in every run? An input of the pipeline has; so has everything if no step
/// changes what later runs read: parameters, or the scales of DelayedScaling. With these, routing may send other
/// numbers of tokens to the experts in every run.
bool isSameInEveryRun(const Plan& plan, const Step& step, int operand);

/// The sizes of the groups, which are data.
struct GroupSizes {
  Binding splitSizes;
  GroupedSize size;
  bool areFixed = true;  // the same in every run

  /// copy(to, from, sizeBytes): from the device's memory to the host's. Throws std::runtime_error where the sizes,
  /// which come from the user, are not legal.
  using Copy = std::function<void(void*, const std::byte*, std::size_t)>;
  std::vector<RowGroup> read(Pointers pointers, const Copy& copy) const;
};

/// The operands that a program names, with their dtypes.
using ProgramOperands = std::vector<std::pair<OperandKey, DType>>;

struct GroupedForwardStep {
  GroupedForm form;
  GroupSizes groups;
  Binding x, scales, y;
  GroupedOperand weights, biases;

  /// The operands of biasProgram().
  ProgramOperands biasOperands() const;
};

struct GroupedBackwardStep {
  GroupedForm form;
  GroupSizes groups;
  Binding gradY;                           // as a tensor with values
  Binding gradYForInput, gradYForWeights;  // perhaps quantized
  Binding x, scales, gradX, gradScales;
  GroupedOperand weights, gradWeights, biases, gradBiases;

  /// Are gradients of the biases or of their scales requested?
  bool hasBiasGrads() const { return gradBiases.isPresent() || gradScales; }
  ElementwiseProgram biasGradProgram() const;
  /// The operands of biasGradProgram().
  ProgramOperands biasGradOperands() const;
};

/// Errors: those of requireOperand().
Result<GroupedForwardStep> readGroupedForward(const StepRequest& request);
Result<GroupedBackwardStep> readGroupedBackward(const StepRequest& request);

}  // namespace fuseline
