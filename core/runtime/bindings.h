// Bindings: the tensors that a run starts with, from a seed or from a file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <cstdint>
#include <functional>
#include <string>

namespace fuseline {

/// A tensor for every input ("x"), parameter ("fc1.weight") and, in training, output gradient ("grad.y"), in graph
/// order. Tensors in `given` are used, an amax history in the length that the recipe requires. The rest is drawn from
/// the seed and the tensor's name and depends on nothing else: data from N(0, 1) or as the port of the first consumer
/// defines, parameters as their op initializes them; the gradient of a scalar output is 1. Errors: a given tensor that
/// the graph does not need (with the nearest name), or one with another spec. isWanted: leaves out all other tensors.
Result<NamedTensors> makeBindings(const Graph& graph, std::uint64_t seed, const NamedTensors& given = {},
                                  const std::function<bool(const std::string& name)>& isWanted = {});

/// Bytes of the tensors that makeBindings() makes.
std::int64_t bindingBytes(const Graph& graph);

/// The tensors that makeBindings() accepts.
NamedTensors thoseThatFit(const Graph& graph, NamedTensors tensors);

/// Those of the bindings that are the graph's parameters.
NamedTensors parametersOf(const Graph& graph, const NamedTensors& bindings);

}  // namespace fuseline
