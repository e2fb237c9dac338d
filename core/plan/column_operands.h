// Which operands of kernels may be columns of a wider tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <cstdint>

namespace fuseline {

/// May the operand be `width` columns of each row of a wider tensor? Otherwise the kernel needs it contiguous. Kernels
/// of all backends keep to it.
bool takesColumns(const Graph& graph, const Step& step, const OperandKey& key, std::int64_t width);

}  // namespace fuseline
