// Operations of a GroupedLinear other than its GEMMs, as programs for the rows of one group.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/elementwise.h"
#include "core/ops/grouped_form.h"

namespace fuseline::grouped {

inline constexpr OperandKey kX{.kind = OperandKind::Input, .slot = 0};
inline constexpr OperandKey kSplitSizes{.kind = OperandKind::Input, .slot = GroupedForm::kSplitSizes};
inline constexpr OperandKey kScales{.kind = OperandKind::Input, .slot = GroupedForm::kScales};
inline constexpr OperandKey kY{.kind = OperandKind::Output};
inline constexpr OperandKey kGradY{.kind = OperandKind::GradOutput};
inline constexpr OperandKey kGradX{.kind = OperandKind::GradInput, .slot = 0};
inline constexpr OperandKey kGradScales{.kind = OperandKind::GradInput, .slot = GroupedForm::kScales};
/// In programs these denote the current group's tensors.
inline constexpr OperandKey kBias{.kind = OperandKind::Parameter};
inline constexpr OperandKey kGradBias{.kind = OperandKind::GradParameter};
/// The results of the GEMMs, before the bias is added.
inline constexpr OperandKey kSums{.member = -1, .kind = OperandKind::Output};

/// y = sums + bias, or sums + bias scales.
ElementwiseProgram biasProgram(bool isScaled);

/// db = dy, or dy scales, summed over the rows; dscales = dy bias, summed over each row.
ElementwiseProgram biasGradProgram(bool isScaled, bool wantsBias, bool wantsScales);

}  // namespace fuseline::grouped
