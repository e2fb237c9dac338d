// A Split as a pass over rows that may rotate and quantize its parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/kernel_def.h"

#include <memory>

namespace fuseline::cpu::kernels {

/// A step of a Split, perhaps with a Bias and rotary embeddings.
Result<std::unique_ptr<Kernel>> compileSplitRotary(const CompileRequest& request);

}  // namespace fuseline::cpu::kernels
