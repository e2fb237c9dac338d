// Graphs of operations on tensors, in plain loops: what cuDNN is asked for, and nothing more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/tensor_graph.h"

#include <memory>

namespace fuseline::testing {

/// Computes in double; rounds where a tensor has an element type that is narrower. tensors: by index.
void runGraph(const cuda::TensorGraph& graph, std::span<std::byte* const> tensors);

std::unique_ptr<cuda::GraphLibrary> makeHostGraphs();

}  // namespace fuseline::testing
