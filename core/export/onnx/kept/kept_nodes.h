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
#include <set>
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
  std::vector<std::string> inputs;  // tensors of the graph that the nodes read as "x", "x2" and so on
};

/// Names in a pipeline of a graph's inputs.
using KeptInputs = std::map<std::string, std::string, std::less<>>;

/// Which nodes are kept: those that compute `outputs`, back to `inputs`, to tensors that ops make, which become further
/// inputs, and to inputs of the graph, which keep their names or get those in `ids`.
struct KeptRange {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::set<std::string> madeByOps = {};
  bool hasTypes = false;  // notes the types of all of them, not only in a model of several
};

/// Small constants are in the text. Equal layers have equal texts. Nothing: a tensor has no producer, or a node stands
/// for an op of Fuseline.
std::optional<KeptNodes> keepNodes(const OnnxReading& graph, const OnnxOpsets& opsets, const KeptRange& range,
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
  /// TensorProto.DataType of each; those that are given and not 0 are converted to and from the types that the nodes
  /// have.
  std::vector<std::int32_t> inputTypes = {}, outputTypes = {};
};

struct WrittenConstant {
  int initializer = -1;  // in GraphProto
  std::string name;      // "attention.constant1"
};

/// In all nodes, in their subgraphs, and in declarations of inputs, outputs and other tensors.
void renameTensors(::onnx::GraphProto& graph, const std::map<std::string, std::string>& names);

/// The name within a text of an output.
std::string keptOutputName(std::size_t index);

/// The model of a text. Nothing: keepNodes() did not write it for this number of outputs.
std::optional<::onnx::ModelProto> keptModel(const std::string& text, std::size_t numOutputs);

/// Adds the nodes of a text, in the form of opset 20 or newer, and the inputs of the model that they read.
/// Errors: the text was not written by keepNodes() for this number of inputs and outputs.
Result<std::vector<WrittenConstant>> writeKeptNodes(const std::string& text, const KeptPlace& place,
                                                    ::onnx::GraphProto& graph, OnnxOpsets& opsets);
/// The same for keptModel().
std::vector<WrittenConstant> writeKeptNodes(::onnx::ModelProto kept, const KeptPlace& place, ::onnx::GraphProto& graph,
                                            OnnxOpsets& opsets);

}  // namespace fuseline
