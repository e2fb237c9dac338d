// Forward of MoEUnpermute, alone and with the tensors added behind it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/moe_step.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/moved_rows_launch.h"

#include <memory>

namespace fuseline::cuda {

/// Rows of this element type and width, with the token's weights.
MovedRows movedRowsOf(const UnpermuteStep& step, const TensorSpec& from, const TensorSpec& to, Pointers pointers);

std::unique_ptr<Kernel> makeUnpermuteForward(UnpermuteAddStep step, const DeviceContext& device);

/// Member 0 of the query is the op.
Verdict supportsUnpermute(const KernelQuery& query);

}  // namespace fuseline::cuda
