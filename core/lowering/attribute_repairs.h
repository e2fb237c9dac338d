// Reports ops whose attributes are missing or do not fit their inputs, with the values that would fit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/lowering/op_parts.h"

#include <optional>
#include <vector>

namespace fuseline {

class AttributeRepairs {
 public:
  /// All outlive it.
  AttributeRepairs(const Section& section, const OpParts& parts, DiagnosticSink& sink)
      : m_section(section), m_parts(parts), m_sink(sink) {}

  /// inputs: of the op, where all are known.
  void reportMissing(std::size_t index, const AttributeSpec& spec,
                     const std::optional<std::vector<TensorSpec>>& inputs);
  void reportMismatch(std::size_t index, const std::vector<TensorSpec>& inputs, const InferenceProblem& problem);

 private:
  bool fillOthers(std::size_t index, const AttributeSpec& spec, const TensorSpec& input, Attributes& attributes) const;
  bool wouldFit(std::size_t index, const AttributeSpec& spec, const Json& value,
                const std::vector<TensorSpec>& inputs) const;

  const Section& m_section;
  const OpParts& m_parts;
  DiagnosticSink& m_sink;
};

}  // namespace fuseline
