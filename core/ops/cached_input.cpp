// Makes the form of an activation that keeps its input in E4M3.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cached_input.h"

#include "core/ops/reference_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

namespace fuseline {

namespace {
namespace cached_input_parts {

constexpr const char* kAttribute = "cache_quantized_input";
constexpr const char* kDType = "dtype";  // of x
constexpr float kLargest = 448.0F;

using References = std::span<const ReferenceTensor>;
using PlainOperation = std::shared_ptr<const BasicOperation>;

/// NaN does not count.
float amaxOf(const std::vector<double>& values) {
  float amax = 0.0F;
  for (const double value : values) amax = std::fmax(amax, std::abs(static_cast<float>(value)));
  return amax;
}

/// x scale and 1 / scale, in float32 as kernels compute them. The values are encoded when the tensor is stored.
std::vector<ReferenceTensor> scaled(const ReferenceTensor& x) {
  const float scale = currentScale(amaxOf(x.values));
  const auto byScale = [scale](double value) {
    const float product = static_cast<float>(value) * scale;
    return static_cast<double>(std::isnan(product) ? product : std::clamp(product, -kLargest, kLargest));
  };
  return {mapped(x, byScale), {.shape = {1}, .values = {static_cast<double>(1.0F / scale)}}};
}

/// x as backward reads it: multiplied in float32, rounded to the dtype of x.
ReferenceTensor restored(const SavedValues& saved) {
  const auto inverse = static_cast<float>(saved.residual(kInverseScale).values.front());
  const ReferenceTensor x = mapped(saved.residual(kQuantizedInput), [inverse](double code) {
    return static_cast<double>(static_cast<float>(code) * inverse);
  });
  const DType dtype = parseDType(saved.state().text(kDType)).value_or(DType::F32);
  return {.shape = x.shape, .values = Tensor::fromDoubles({dtype, x.shape}, x.values).toDoubles()};
}

Result<OperationSpecs> infer(const BasicOperation& plain, const Attributes& attributes,
                             std::span<const TensorSpec> inputs) {
  Result<OperationSpecs> specs = plain.infer(attributes, inputs);
  if (specs) specs->residuals = {{DType::E4M3, inputs[0].shape}, {DType::F32, {1}}};
  return specs;
}

OperationContext saveContext(const SaveArguments& arguments) {
  if (!arguments.needs.inputs[0]) return {};
  OperationContext context{
      .tensors = {{OperandKind::Residual, kQuantizedInput}, {OperandKind::Residual, kInverseScale}}};
  context.state.set(kDType, std::string(dtypeName(arguments.inputs[0].dtype)));
  return context;
}

void setMathematics(BasicOperation& op, const PlainOperation& plain) {
  op.infer = [plain](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    return infer(*plain, attributes, inputs);
  };
  op.forwardCompute = [plain](const Attributes& attributes, References inputs, References parameters) {
    ReferenceForward made = plain->forwardCompute(attributes, inputs, parameters);
    made.residuals = scaled(inputs[0]);
    return made;
  };
  op.saveContext = saveContext;
  op.backwardCompute = [plain](const Attributes& attributes, const SavedValues& saved, References gradOutputs) {
    const ReferenceTensor x = restored(saved);
    SavedValues exact;
    exact.add({OperandKind::Input, 0}, x);
    return plain->backwardCompute(attributes, exact, gradOutputs);
  };
}

BasicOperation cachedForm(const BasicOperation& plain) {
  BasicOperation op = plain;
  op.residuals = {{"x_quantized", op.inputs.front().shape, "x / x_scale_inv in E4M3."},
                  {"x_scale_inv", "[1]", "The largest magnitude of x / 448."}};
  setMathematics(op, std::make_shared<const BasicOperation>(plain));
  op.inner = std::exchange(op.elementwise, {});
  op.kernel = "cached_activation";
  return op;
}

AttributeSpec attribute() {
  return {.name = kAttribute,
          .type = AttributeType::Boolean,
          .defaultValue = false,
          .help =
              "Keep x for backward in E4M3 with one scale, one byte per element; the gradient is then that of the "
              "rounded x. In inference nothing is quantized. The op is not fused."};
}

}  // namespace cached_input_parts
}  // namespace

float currentScale(float amax) {
  using namespace cached_input_parts;
  if (!std::isfinite(amax) || amax == 0.0F) return 1.0F;
  const float scale = kLargest / amax;
  return std::isinf(scale) ? std::numeric_limits<float>::max() : scale;
}

ElementwiseProgram cachedActivationProgram(const FusibleOperation& operation, const Attributes& attributes,
                                           bool isBackward) {
  ElementwiseComposer composer;
  composer.append(0, operation.inner, attributes, isBackward, 1);
  return composer.finish();
}

BasicOperation withCachedInput(BasicOperation plain) {
  using namespace cached_input_parts;
  plain.attributes.push_back(attribute());
  plain.specialise = [](const FusibleOperation& self, const Attributes& attributes) -> Result<FusibleOperation> {
    const bool isCached = attributes.has(kAttribute) && attributes.boolean(kAttribute);
    return isCached ? cachedForm(self) : self;
  };
  return plain;
}

}  // namespace fuseline
