// The basic ops that an op of a document stands for, and the shapes that they compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/lowering/section.h"

#include <string>
#include <utility>
#include <vector>

namespace fuseline {

/// One basic op of a document's op.
struct OpPart {
  std::string id;
  OperationPointer operation;
  Attributes attributes;
};

/// Feeds parts in chain order: main output to main input; extra inputs and outputs of the whole are taken and given in
/// the order in which the parts have them. `run(part, inputs)` returns the outputs of one part.
template <class Tensor, class Run>
Result<std::vector<Tensor>> runChain(const std::vector<OpPart>& parts, std::vector<Tensor> inputs, const Run& run) {
  std::vector<Tensor> results;
  std::size_t numTaken = 1;
  Tensor main = inputs.front();
  for (const OpPart& part : parts) {
    std::vector<Tensor> partInputs = {main};
    for (std::size_t i = 1; i < part.operation->inputs.size() && numTaken < inputs.size(); ++i)
      partInputs.push_back(inputs[numTaken++]);
    Result<std::vector<Tensor>> outputs = run(part, std::move(partInputs));
    if (!outputs) return outputs.error();
    main = outputs->front();
    results.insert(results.end(), outputs->begin() + 1, outputs->end());
  }
  results.insert(results.begin(), main);
  return results;
}

struct InferenceProblem {
  std::string code = "shape-mismatch";
  std::string message;
};

/// Can sizes and strides of this tensor be computed in 64 bits?
bool isCountable(const TensorSpec& spec);

/// The outputs of one part, or of all in chain order. Errors: see problem, which says what to report.
Result<std::vector<TensorSpec>> inferPart(const OpPart& part, const std::vector<TensorSpec>& inputs,
                                          InferenceProblem& problem);
Result<std::vector<TensorSpec>> inferChain(const std::vector<OpPart>& parts, std::vector<TensorSpec> inputs,
                                           InferenceProblem& problem);

/// The parts of the ops of one section, in the place where it is lowered.
class OpParts {
 public:
  /// path: of the instance of a block, "layer1.attention"; empty: the pipeline. Section and table outlive it.
  OpParts(const Section& section, const OperationTable& operations, std::string path)
      : m_section(section), m_operations(operations), m_path(std::move(path)) {}

  /// "layer1.attention.fc1"
  std::string pathOf(std::size_t index) const;
  /// What is not run has no parts, but shapes as a whole.
  OpPart asWhole(std::size_t index) const;
  /// The parts to infer shapes with. Errors: an attribute that a part refuses.
  Result<std::vector<OpPart>> inferred(std::size_t index) const;
  /// The parts of an op with these attributes. Errors: one that a part refuses.
  Result<std::vector<OpPart>> expand(std::size_t index, const Attributes& attributes) const;
  /// The same for other attributes than the written ones, on which the op's form may depend.
  Result<std::vector<OpPart>> expandWith(std::size_t index, const Attributes& attributes) const;

 private:
  const FusibleOperation& type(std::size_t index) const { return *m_section.type(index); }

  const Section& m_section;
  const OperationTable& m_operations;
  std::string m_path;
};

}  // namespace fuseline
