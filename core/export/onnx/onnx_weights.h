// Weights out of ONNX models, as the parameters of ops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"
#include "core/graph/graph.h"
#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// A parameter of an op, such as "weight", and the constant of a graph that holds it.
struct FoundWeight {
  std::string parameter;
  const ::onnx::TensorProto* constant = nullptr;  // nullptr: it is zero, as where the graph adds nothing
  bool isTransposed = false;                      // a matrix: [in, out] in the model
  const ::onnx::TensorProto* below = nullptr;     // the rows that come after, of another constant like it
};

/// The elements, rounded once where the spec has a narrower dtype. folder: where files of external data stand.
/// Errors: another shape, or number of bytes; elements that are no f32, f16 or bf16; external data that cannot be read,
/// or stand outside of the folder.
Result<Tensor> readWeight(const FoundWeight& weight, const TensorSpec& spec, const std::filesystem::path& folder);

struct WeightSource {
  /// Nothing: the model has none for this parameter, by its number.
  std::function<std::optional<FoundWeight>(const Node& node, int slot)> find;
  std::filesystem::path folder;
};

struct ReadWeights {
  NamedTensors tensors;              // named as in safetensors files: "fc1.weight"
  std::vector<std::string> missing;  // parameters that the model has nothing for
};
/// Of all parameters of a graph. Errors: as readWeight().
Result<ReadWeights> readWeights(const Graph& graph, const WeightSource& source);

}  // namespace fuseline
