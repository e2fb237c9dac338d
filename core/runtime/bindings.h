// Bindings: the tensors that a run starts with, from a seed or from a file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

#include <cstdint>

namespace fuseline {

/// A tensor that a run of a graph needs from outside.
struct BindingSpec {
  std::string name;  // "x", "fc1.weight", "grad.y"
  TensorSpec spec;
  Initialisation initialisation;
  bool isData = false;  // drawn from N(0, 1) instead of its initialisation
};

/// Inputs, parameters and, in training, the gradients of the outputs: in graph order.
std::vector<BindingSpec> bindingSpecs(const Graph& graph);

/// A tensor for every entry of bindingSpecs(). What `given` holds is taken from there; the rest is drawn from the
/// seed and the tensor's name, so that it depends on nothing else: same seed, same bits, on every device.
/// Errors: a given tensor that the graph does not need (with the nearest name), or one with another spec.
Result<NamedTensors> makeBindings(const Graph& graph, std::uint64_t seed, const NamedTensors& given = {});

}  // namespace fuseline
