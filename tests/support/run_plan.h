// Runs a graph under a report and compares two results by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/runtime/backend.h"
#include "core/tensor/tensor.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fuseline::testing {

/// Outputs and gradients by name, in double.
using RunResults = std::map<std::string, std::vector<double>>;

/// Draws all bindings but the given ones from the seed; throws std::runtime_error with the sentence where the run
/// fails.
RunResults runPlan(const Graph& graph, const FusionReport& report, std::shared_ptr<Backend> backend,
                   std::uint64_t seed = 1, const NamedTensors& given = {});
RunResults runPlan(const Graph& graph, const Plan& plan, std::shared_ptr<Backend> backend, std::uint64_t seed = 1,
                   const NamedTensors& given = {});

/// For all that the graph needs, values in [offset, offset + 1), as TransformerEngine's tests draw them.
NamedTensors uniformData(const Graph& graph, double offset = 0.0);

/// Empty if both have the same names and |a - b| <= rtol * (|b| + rms(b)) + atol everywhere; else the worst element.
/// The rms term covers elements that are small because large parts canceled.
std::string firstDifference(const RunResults& actual, const RunResults& expected, double rtol, double atol = 1e-5);

/// Empty if, for every expected result, the error's norm is at most rtol times that of the expected value and the same
/// elements are NaN or infinite; else the first other one. Where all elements are expected to be 0, all are.
std::string firstDifferenceInNorm(const RunResults& actual, const RunResults& expected, double rtol);

/// Empty if NaN, infinity and minus infinity are at the same positions; else the first element that differs.
std::string firstNonFiniteDifference(const RunResults& actual, const RunResults& expected);

}  // namespace fuseline::testing
