// The vector loops that the strip engine calls: one function an opcode, one codec a dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/elementwise.h"
#include "core/tensor/dtype.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cpu {

/// out[i] = f(a[i], b[i]) for i < n. Which of the pointers are float32 and which are encoded depends on the function.
/// out may be a or b.
using StripFunction = void (*)(void* out, const void* a, const void* b, std::size_t n);

/// out[i] = mask.keeps(first + i) ? kept : 0 for i < n.
using DropoutFunction = void (*)(float* out, const DropoutMask& mask, float kept, std::uint64_t first, std::size_t n);

/// The sum of n values, in float32.
using SumFunction = float (*)(const float* values, std::size_t n);

/// How exact a value must be: to float32, or only to bf16 because nothing finer is stored of it.
enum class Precision { Full, Bf16 };

/// Storage format of a strip's elements. Other dtypes are decoded to float32 and encoded from it separately.
enum class StripForm { F32, Bf16 };

struct StripForms {
  StripForm a = StripForm::F32;
  StripForm b = StripForm::F32;
  StripForm out = StripForm::F32;
};

/// Computes an opcode in float32; bf16 operands are converted on the way. Not for Load, Constant and Dropout.
StripFunction computeFunction(Opcode opcode, Precision precision, StripForms forms = {});
/// out: float32; a: elements of dtype.
StripFunction decodeFunction(DType dtype);
/// out: elements of dtype; a: float32. Rounds to nearest even.
StripFunction encodeFunction(DType dtype);
DropoutFunction dropoutFunction();
SumFunction sumFunction();

}  // namespace fuseline::cpu
