// The nodes of a model that an External op replaces: extracted from the model, and written into one again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"
#include "core/support/result.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// The versions of the ops' domains that a model has.
using OnnxOpsets = ::google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>;

/// A larger constant that kept nodes read, by its name next to them: "constant1".
struct KeptConstant {
  std::string name;
  const ::onnx::TensorProto* tensor = nullptr;
};

struct KeptNodes {
  std::string text;  // a ModelProto in base64
  std::vector<KeptConstant> constants;
};

/// Names in a pipeline of a graph's inputs.
using KeptInputs = std::map<std::string, std::string, std::less<>>;

/// The nodes that compute `outputs` from `inputs`, and from other inputs of the graph, which keep their names or get
/// those in `ids`. Small constants are in the text. Equal layers have equal texts. Nothing: a node has subgraphs, which
/// read tensors by other names.
std::optional<KeptNodes> keepNodes(const OnnxReading& graph, const OnnxOpsets& opsets,
                                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                                   const KeptInputs& ids, const std::filesystem::path& folder);

/// A constant as files of weights hold it: numbers of f32, f16, bf16 and i64 as they are, others as their bytes.
Result<Tensor> keptTensor(const KeptConstant& constant, const std::filesystem::path& folder);
/// An initializer with the elements of such a tensor. Errors: it has another size.
Result<void> fillKept(::onnx::TensorProto& initializer, const Tensor& tensor, std::string_view name);

/// Where kept nodes are written to.
struct KeptPlace {
  std::string id;  // of the External
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

struct WrittenConstant {
  int initializer = -1;  // in GraphProto
  std::string name;      // "attention.constant1"
};

/// Adds the nodes of a text, in the form of opset 20 or newer, and the inputs of the model that they read.
/// Errors: the text was not written by keepNodes() for this number of inputs and outputs.
Result<std::vector<WrittenConstant>> writeKeptNodes(const std::string& text, const KeptPlace& place,
                                                    ::onnx::GraphProto& graph, OnnxOpsets& opsets);

/// Sorts the nodes into an executable order; nodes that are already in one keep theirs.
void sortNodes(::onnx::GraphProto& graph);

}  // namespace fuseline
