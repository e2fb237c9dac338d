// The generated code of a whole plan, so that it can be compiled before its steps are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/kernel_def.h"

#include <string>
#include <vector>

namespace fuseline::cuda {

/// The sources that the elementwise steps of a plan will ask a compiler for, each once. Launches nothing.
std::vector<std::string> programSources(const Graph& graph, const Plan& plan, const CompileOptions& options,
                                        const DeviceContext& device);

}  // namespace fuseline::cuda
