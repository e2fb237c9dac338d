// The kernel of Split and Concat.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/column_copy_step.h"
#include "kernels/cpu/kernel_def.h"

#include <memory>

namespace fuseline::cpu {

/// Errors: the step's.
Result<std::unique_ptr<Kernel>> makeColumnCopy(const CompileRequest& request, Result<ColumnCopyStep> step);

}  // namespace fuseline::cpu
