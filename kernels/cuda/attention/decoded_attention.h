// Attention of quantized tensors where no kernel multiplies their encoded values: they are dequantized first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/kernel_def.h"

#include <functional>
#include <memory>
#include <string>

namespace fuseline::cuda {

/// Does the step read quantized tensors?
bool readsQuantized(const CompileRequest& request);

/// make: the kernel of a request in which the tensors have their dtype. why: no kernel multiplies encoded values.
Result<std::unique_ptr<Kernel>> makeDecodedAttention(
    const CompileRequest& request, const std::string& why,
    const std::function<Result<std::unique_ptr<Kernel>>(const CompileRequest&)>& make);

}  // namespace fuseline::cuda
