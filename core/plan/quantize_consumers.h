// Quantized tensors that a Quantize produces and linear ops use in place of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/step_operands.h"

#include <optional>
#include <vector>

namespace fuseline {

/// The reader of a value through its main input, if that is an op that recipes quantize.
std::optional<GemmOperand> readerAt(const Graph& graph, const Use& use);
/// The operand as which the op that made a value, fused or not, reads the value's gradient.
std::optional<GemmOperand> gradientReaderOf(const Graph& graph, const FusionReport& report, const Value& value);
/// Otherwise gradients are added, and the sum is not quantized.
bool hasOneGradient(const Graph& graph, const Value& value);

class QuantizeConsumers {
 public:
  QuantizeConsumers(const Graph& graph, const FusionReport& report);

  /// The Quantize whose quantized tensors replace those of this operand; nothing: it has its own.
  std::optional<GemmOperand> sourceOf(const GemmOperand& reader) const;
  /// The operands that use the quantized tensors of this Quantize.
  std::vector<GemmOperand> readersOf(const GemmOperand& source) const;
  /// Does the tensor have a consumer in high precision?
  bool isReadPlain(const GemmOperand& source) const;

 private:
  struct Handed {
    GemmOperand source;
    std::vector<GemmOperand> readers;
    bool isReadPlain = false;
  };

  void addForward(const Graph& graph, NodeId id);
  void addBackward(const Graph& graph, const FusionReport& report, NodeId id);
  const Handed* find(const GemmOperand& source) const;

  std::vector<Handed> m_handed;
};

}  // namespace fuseline
