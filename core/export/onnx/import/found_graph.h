// FoundGraph: what an import knows of a model's graph so far. Each step of the import adds to it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_gates.h"
#include "core/export/onnx/onnx_regions.h"
#include "core/export/onnx/onnx_symbols.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace fuseline {

/// A node that is no op, or an op that is left out with such nodes.
struct LeftOutNode {
  std::string name;  // "/attn/p (Softmax)"
  const ::onnx::NodeProto* node = nullptr;
  GraphPart part = {};
  int position = 0;
};

/// Parts that did not fit in one attempt, so that the next attempt leaves them out.
struct Misfits {
  std::set<std::string> tensors;   // their producers are no ops then
  std::set<std::string> literals;  // symbols that are numbers then
  std::string reason;              // for the first of the tensors

  void add(const std::string& tensor, const std::string& why);
};

struct FoundGraph {
  OnnxReading reading;
  ImportedSymbols symbols;
  ImportedIds ids = {};
  std::vector<ImportedOperation> operations = {};
  std::map<std::string, std::string, std::less<>> ports = {};  // in the pipeline, by tensor
  std::set<std::string> made = {};                             // tensors, by ops
  std::vector<LeftOutNode> leftOut = {};
  std::vector<std::string> unknown = {};  // tensors that no node makes

  void leaveOut(const ::onnx::NodeProto& node, const std::string& tensor, const std::vector<std::string>& inputs);
  void sortOperations();
  TensorUses uses() const;

  bool hasUnknown() const { return !unknown.empty() || !leftOut.empty(); }
  std::string unknownText(const char* orBetween = "") const;
};

/// tensor: the one by which the op was found.
std::vector<std::string> outputsOf(const FoundOperation& found, const std::string& tensor);

}  // namespace fuseline
