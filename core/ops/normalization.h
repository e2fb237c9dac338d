// Shared parts of LayerNorm and RMSNorm: attributes, shape inference and the view of x as [rows, n].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <string_view>
#include <vector>

namespace fuseline {

/// normalized_shape, eps, zero_centered_gamma, dtype.
std::vector<AttributeSpec> normalizationAttributes();

/// Specs of a normalization over the trailing axes `normalized_shape`. numParameters tensors of that shape,
/// numStatistics f32 residuals of the leading shape. Errors: the trailing axes of x differ from normalized_shape.
Result<OperationSpecs> inferNormalization(std::string_view operation, const Attributes& attributes, const TensorSpec& x,
                                          std::size_t numParameters, std::size_t numStatistics);

/// 1, or 0 where gamma is zero-centered.
Initialisation initialiseGamma(const Attributes& attributes, const TensorSpec& spec);

/// Elements that are normalized together.
std::int64_t normalizedSize(const Attributes& attributes);
/// The leading shape of x: one statistic for each of its elements.
Shape statisticsShape(const Attributes& attributes, const Shape& x);
/// weight, plus 1 where gamma is zero-centered.
std::vector<double> effectiveGamma(const Attributes& attributes, const ReferenceTensor& weight);

/// Keeps x, the weight and numStatistics residuals.
OperationContext saveNormalization(const SaveArguments& arguments, int numStatistics);

}  // namespace fuseline
