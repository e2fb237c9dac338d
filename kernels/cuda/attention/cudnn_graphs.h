// Graphs of operations on tensors through cuDNN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/tensor_graph.h"
#include "kernels/cuda/stream/stream.h"

#include <memory>

namespace fuseline::cuda {

/// The library is looked for at the first graph, so that pipelines without any run where it is not installed.
std::unique_ptr<GraphLibrary> makeCudnnGraphs(Stream stream);

}  // namespace fuseline::cuda
