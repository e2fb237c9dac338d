// Steps that run an elementwise program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/elementwise.h"
#include "core/runtime/step_operand.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace fuseline {

/// The elements that a program computes.
struct GridSize {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// The grid is that of any full operand. A program without one only sums constants; no rows give the same zeros.
/// places: one per operand. Errors: those of requireResult().
Result<GridSize> findGrid(const StepRequest& request, std::span<const OperandPlace> places);

/// The refusal of a step that quantizes a result with rows that its program does not make.
Error notMadeByRows(const Step& step);

/// Yes if every member is an elementwise op. engine: the part of the backend that runs these, for the refusal.
Verdict areElementwise(const Graph& graph, std::span<const NodeId> members, std::string_view engine);

}  // namespace fuseline
