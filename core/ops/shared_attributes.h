// Attributes, shape checks and dtype rules that several ops share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

namespace ops {

/// Arguments of an op's functions.
using Specs = std::span<const TensorSpec>;
using References = std::span<const ReferenceTensor>;

}  // namespace ops

/// in_features, out_features. The maximum keeps every product of extents within 64 bits.
AttributeSpec featuresAttribute(std::string name, std::string help);
/// dtype of an op's parameters; unset means the dtype of its input.
AttributeSpec dtypeAttribute();
/// tensor_parallel_mode: none, column, row.
AttributeSpec tensorParallelModeAttribute();
/// approximate: the form of GELU.
AttributeSpec approximateAttribute();
/// GELU by the error function; false for ops without the attribute.
bool isExactGelu(const Attributes& given);
AttributeSpec inPlaceAttribute(std::string help);
AttributeSpec booleanAttribute(std::string name, bool defaultValue, std::string help);

/// An error unless the attribute is finite and at least 0 (checkNotNegative), or more than 0 (checkPositive):
/// "SiTUGLU: beta1 is 0, but it must be finite and more than 0."
std::optional<Error> checkNotNegative(std::string_view operation, std::string_view attribute, const Attributes& given);
std::optional<Error> checkPositive(std::string_view operation, std::string_view attribute, const Attributes& given);
/// An error unless the attribute is finite.
std::optional<Error> checkFinite(std::string_view operation, std::string_view attribute, const Attributes& given);

/// The attribute `dtype` if it is set, else the input's.
DType parameterDType(const Attributes& attributes, const TensorSpec& input);
/// The dtype of a sum: the common one, else f32, as PyTorch promotes f16, bf16 and f32.
DType promoted(DType a, DType b);

/// An error unless the last axis of `x` has `expected` elements:
/// "BasicLinear: in_features is 1024, but the last axis of x has 512 elements."
std::optional<Error> checkLastAxis(std::string_view operation, std::string_view attribute, std::int64_t expected,
                                   const TensorSpec& x);

/// An error unless `scales` has one value for each row of `x`, its shape without the last axis.
std::optional<Error> checkScales(std::string_view operation, const TensorSpec& x, const TensorSpec& scales);

/// A context that keeps nothing: backward needs only the output gradient.
OperationContext saveNothing(const SaveArguments& arguments);
/// Keeps the main input, iff its gradient is needed.
OperationContext saveInput(const SaveArguments& arguments);

}  // namespace fuseline
