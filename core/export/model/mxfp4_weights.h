// Weights that files hold in MXFP4: blocks of 32 values of 4 bits with an exponent each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <string>

namespace fuseline {

/// blocks: [.., G, 16] u8, two values a byte, the lower half first. scales: [.., G] u8, E8M0. Result: [.., 32 G] bf16,
/// which holds every such value, those above its range excepted, which become infinite.
/// Errors: other types or shapes. Source: OCP MX v1.0; the names and shapes are those of GPT-OSS.
Result<Tensor> decodedMxfp4(const std::string& name, const Tensor& blocks, const Tensor& scales);

}  // namespace fuseline
