// The kernel of Split and Concat.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/column_copy_step.h"
#include "kernels/cuda/kernel_def.h"

#include <memory>

namespace fuseline::cuda {

/// Errors: the step's.
Result<std::unique_ptr<Kernel>> makeColumnCopy(const CompileRequest& request, Result<ColumnCopyStep> step);

}  // namespace fuseline::cuda
