// Graphs with an optimizer whose gradients are exact, so that updates can be compared element by element.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <memory>

namespace fuseline::testing {

/// A linear layer of one row with a main_grad buffer, and two biases: every gradient is one product or grad.y itself.
inline Graph trainedChain(DType dtype, std::int64_t width, const AdamW& options) {
  return chain(dtype, {1, 5},
               {with(linear(width, "fc"), "accumulate_into_main_grad", true), link("Bias", "b0"), link("Bias", "b1")})
      .withOptimizer(options);
}

/// Everything that the optimizer reads or writes after this number of runs, and the results.
RunResults trainedResults(const Graph& graph, std::shared_ptr<Backend> backend, int runs,
                          const NamedTensors& given = {});

/// The tensors that a training goes on with.
NamedTensors trainedState(const Graph& graph, std::shared_ptr<Backend> backend, int runs,
                          const NamedTensors& given = {});

}  // namespace fuseline::testing
