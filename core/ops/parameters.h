// Attributes about parameters: which of them are trained, and where their gradients go.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Destination of a parameter's gradient.
enum class GradientSink : std::uint8_t {
  Own,         // a separate tensor, in the parameter's dtype
  Accumulate,  // added to a float32 buffer that outlives the step: the parameter's main_grad
  Overwrite,   // written to that buffer
};

/// The attribute that sets whether a parameter is trained: "weight_requires_grad". Numbered parameters, such as weight0
/// and weight1, share theirs.
std::string requiresGradName(std::string_view parameter);
AttributeSpec requiresGradAttribute(std::string_view parameter);
/// Adds the attributes of all parameters, where the op does not have them.
void declareRequiresGrad(FusibleOperation& operation);

/// Is the parameter trained? Yes, unless its attribute, or the op's "requires_grad" for all of them, is false.
bool isTrained(const FusibleOperation& operation, const Attributes& attributes, int parameter);

/// accumulate_into_main_grad and overwrite_main_grad, for ops with a parameter that has `hasMainGrad`.
std::vector<AttributeSpec> mainGradAttributes();
/// delay_wgrad_compute. Applies to the parameters that can have a main_grad: weights, not biases.
AttributeSpec delayedGradientAttribute();
/// Is the parameter's gradient computed after all the rest of backward?
bool isGradientDelayed(const FusibleOperation& operation, const Attributes& attributes, int parameter);
GradientSink gradientSink(const FusibleOperation& operation, const Attributes& attributes, int parameter);

}  // namespace fuseline
