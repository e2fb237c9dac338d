// Activations as data: an op is a function of one number applied to every element, or a gate that multiplies a function
// of each row's first half by one of its second half. Both exist with a scale for each row, too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// A function of one number and its derivative, twice: as reference, and as an elementwise expression.
struct ScalarFunction {
  std::function<double(double)> value;
  std::function<double(double)> slope;
  std::function<ValueIndex(ElementwiseBuilder&, ValueIndex)> valueExpression;
  std::function<ValueIndex(ElementwiseBuilder&, ValueIndex)> slopeExpression;
  /// Floating-point operations; exp and tanh count as one.
  std::int64_t valueFlops = 0;
  std::int64_t slopeFlops = 0;
};

struct UnaryActivation {
  std::string name;
  std::string summary;
  std::string formula;
  std::string derivative;
  std::string source;
  std::vector<std::string> keywords;
  std::function<ScalarFunction(const Attributes&)> function;
  std::vector<AttributeSpec> attributes = {};
  /// An error when the attributes are no numbers to compute with; may be empty.
  std::function<std::optional<Error>(const Attributes&)> check = {};
};

/// The functions of the two halves. Without `linear` the second half is unchanged.
struct GateFunctions {
  ScalarFunction activated;
  std::optional<ScalarFunction> linear;
};

struct GatedActivation {
  std::string name;
  std::string summary;
  std::string formula;
  std::string derivative;
  std::string source;
  std::vector<std::string> keywords;
  std::vector<AttributeSpec> attributes;
  /// An error when the attributes are no numbers to compute with; may be empty.
  std::function<std::optional<Error>(const Attributes&)> check;
  std::function<GateFunctions(const Attributes&)> functions;
};

/// y = f(x): the shape and dtype of x. Keeps x for backward, in E4M3 with cache_quantized_input.
BasicOperation unaryActivation(UnaryActivation activation);
/// y = f(a) g(b) with a and b the halves of the last axis of x, which must be even. Keeps x likewise. With an attribute
/// glu_interleave_size, a and b are interleaved in blocks of this number of elements.
BasicOperation gatedActivation(GatedActivation activation);

/// The same with an extra input `scales`, one value per row, by which the row of y is multiplied before it is rounded.
/// Keeps x and scales for backward.
BasicOperation scaledUnaryActivation(UnaryActivation activation);
BasicOperation scaledGatedActivation(GatedActivation activation);

/// glu_interleave_size: not set, a and b are halves.
AttributeSpec interleaveAttribute(std::string help = "");
/// activation_recompute_in_mlp of a scaled activation without a gate.
AttributeSpec recomputeAttribute();
/// The same of a scaled gate, which must be false.
AttributeSpec noRecomputeAttribute();

/// The function of an activation without attributes.
std::function<ScalarFunction(const Attributes&)> always(ScalarFunction function);
/// The functions of a gate without attributes: f(a) b.
std::function<GateFunctions(const Attributes&)> activatedBy(ScalarFunction function);

}  // namespace fuseline
