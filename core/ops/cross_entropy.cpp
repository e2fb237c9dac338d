// The loss of a classifier or a language model: minus the logarithm of the softmax at the target.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/random.h"
#include "core/ops/cross_entropy_form.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace cross_entropy_parts {

constexpr const char* kName = "CrossEntropy";

Shape rowsShape(const Shape& logits) { return {logits.begin(), logits.end() - 1}; }

std::optional<Error> checkAttributes(const Attributes& given) {
  if (auto error = checkNotNegative(kName, "lse_square_scale", given)) return error;
  const double smoothing = given.real("label_smoothing");
  if (smoothing >= 0.0 && smoothing < 1.0) return std::nullopt;
  return Error{
      .message = fmt::format("{}: label_smoothing is {}, but it must be at least 0 and less than 1.", kName, smoothing),
      .subject = "label_smoothing"};
}

Result<OperationSpecs> infer(const Attributes& attributes, Specs inputs) {
  if (auto error = checkAttributes(attributes)) return *error;
  const Shape& x = inputs[CrossEntropyForm::kLogits].shape;
  if (x.empty() || x.back() == 0)
    return Error{fmt::format("{}: x has the shape {}; its last axis must be the classes.", kName, toString(x))};
  const Shape rows = rowsShape(x);
  if (inputs[CrossEntropyForm::kTarget].shape != rows)
    return Error{fmt::format("{}: target has the shape {}, but x has the shape {}; expected one target per row, {}.",
                             kName, toString(inputs[CrossEntropyForm::kTarget].shape), toString(x), toString(rows))};
  const bool isReduced = crossEntropyForm(attributes).reduction != LossReduction::None;
  return OperationSpecs{.outputs = {{.dtype = DType::F32, .shape = isReduced ? Shape() : rows}},
                        .residuals = {{.dtype = DType::F32, .shape = rows}}};
}

/// A subtraction, an exponential and an addition for each logit and two comparisons; backward another exponential.
FlopCount flops(const Attributes&, Specs inputs) {
  return {.forward = saturatedProduct(5, inputs[0].numElements()),
          .backward = saturatedProduct(4, inputs[0].numElements())};
}

double logSumExp(std::span<const double> logits) {
  const double most = *std::ranges::max_element(logits);
  return most + std::log(std::accumulate(logits.begin(), logits.end(), 0.0,
                                         [most](double sum, double z) { return sum + std::exp(z - most); }));
}

/// Throws for a target that is no class: it is known at run time only.
struct Targets {
  Targets(const CrossEntropyForm& form, const ReferenceTensor& tensor, std::int64_t classes)
      : rows(tensor.values.begin(), tensor.values.end()) {
    const Result<std::int64_t> counted = countTargets(form, rows, classes);
    if (!counted) throw std::invalid_argument(counted.error().message);
    scale = form.rowScale(*counted);
  }

  std::vector<std::int64_t> rows;
  double scale = 1.0;  // of the rows that count
};

double lossOf(const CrossEntropyForm& form, std::span<const double> logits, std::int64_t target, double lse) {
  double loss = (1.0 - form.smoothing) * (lse - logits[static_cast<std::size_t>(target)]);
  if (form.lseSquareScale > 0.0) loss += form.lseSquareScale * lse * lse;
  if (form.smoothing == 0.0) return loss;  // 0 times a masked class must not count
  const double mean = std::accumulate(logits.begin(), logits.end(), 0.0) / static_cast<double>(logits.size());
  return loss + form.smoothing * (lse - mean);
}

/// An ignored row is not read.
ReferenceForward forward(const Attributes& attributes, References inputs, References) {
  const CrossEntropyForm form = crossEntropyForm(attributes);
  const ReferenceTensor& x = inputs[CrossEntropyForm::kLogits];
  const std::int64_t classes = x.cols();
  const Targets targets(form, inputs[CrossEntropyForm::kTarget], classes);
  ReferenceTensor losses = referenceZeros(rowsShape(x.shape));
  ReferenceTensor lse = losses;
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    const auto index = static_cast<std::size_t>(row);
    const std::int64_t target = targets.rows[index];
    if (form.isIgnored(target)) continue;
    const std::span<const double> logits = referenceRow(x, row, classes);
    lse.values[index] = logSumExp(logits);
    losses.values[index] = lossOf(form, logits, target, lse.values[index]);
  }
  if (form.reduction == LossReduction::None) return {.outputs = {losses}, .residuals = {lse}};
  const double sum = std::accumulate(losses.values.begin(), losses.values.end(), 0.0);
  return {.outputs = {{.shape = {}, .values = {sum * targets.scale}}}, .residuals = {lse}};
}

OperationContext saveContext(const SaveArguments& arguments) {
  if (!arguments.needs.inputs[CrossEntropyForm::kLogits]) return {};
  return {.tensors = {{OperandKind::Input, CrossEntropyForm::kLogits},
                      {OperandKind::Input, CrossEntropyForm::kTarget},
                      {OperandKind::Residual, CrossEntropyForm::kLse}}};
}

void writeGradient(const CrossEntropyForm& form, std::span<const double> logits, std::int64_t target, double lse,
                   double scale, std::span<double> dx) {
  const double uniform = form.smoothing / static_cast<double>(logits.size());
  for (std::size_t v = 0; v < logits.size(); ++v)
    dx[v] = scale * (std::exp(logits[v] - lse) * (1.0 + 2.0 * form.lseSquareScale * lse) - uniform);
  dx[static_cast<std::size_t>(target)] -= scale * (1.0 - form.smoothing);
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues& saved, References gradOutputs) {
  ReferenceBackward gradients{.inputs = {{}, {}}};
  if (!saved.has({OperandKind::Input, CrossEntropyForm::kLogits})) return gradients;
  const CrossEntropyForm form = crossEntropyForm(attributes);
  const ReferenceTensor& x = saved.input(CrossEntropyForm::kLogits);
  const Targets targets(form, saved.input(CrossEntropyForm::kTarget), x.cols());
  ReferenceTensor dx = referenceZeros(x.shape);
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    const auto index = static_cast<std::size_t>(row);
    const std::int64_t target = targets.rows[index];
    if (form.isIgnored(target)) continue;
    const double dy = gradOutputs[0].values[form.reduction == LossReduction::None ? index : 0];
    writeGradient(form, referenceRow(x, row, x.cols()), target, saved.residual().values[index], dy * targets.scale,
                  referenceRow(dx, row, x.cols()));
  }
  gradients.inputs[CrossEntropyForm::kLogits] = std::move(dx);
  return gradients;
}

Tensor drawTargets(const DrawArguments& arguments) {
  const auto classes = static_cast<double>(arguments.inputs[CrossEntropyForm::kLogits].cols());
  const TensorSpec& spec = arguments.inputs[CrossEntropyForm::kTarget];
  std::vector<double> targets(static_cast<std::size_t>(spec.numElements()));
  RandomStream(arguments.seed, arguments.name).uniforms(0, targets);
  for (double& target : targets) target = std::floor(target * classes);
  return Tensor::fromDoubles(spec, targets);
}

std::vector<AttributeSpec> attributes() {
  return {
      {.name = "ignore_index",
       .type = AttributeType::Integer,
       .defaultValue = std::int64_t{-100},
       .help = "Rows with this target are ignored: no loss, no gradient, not part of the mean."},
      {.name = "reduction",
       .type = AttributeType::Text,
       .defaultValue = std::string("mean"),
       .choices = {"mean", "sum", "none"},
       .help = "Reduction of the row losses; none: one loss per row. The mean of no rows is 0."},
      {.name = "label_smoothing",
       .type = AttributeType::Real,
       .defaultValue = 0.0,
       .minimum = 0.0,
       .maximum = 1.0,
       .help = "Share of the target that is spread over all classes; less than 1."},
      {.name = "lse_square_scale",
       .type = AttributeType::Real,
       .defaultValue = 0.0,
       .minimum = 0.0,
       .help =
           "Coefficient of the z-loss: the square of the log-sum-exp of each row times this is added to its loss."}};
}

OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kClasses = 32768;
  const std::int64_t rows = std::max<std::int64_t>(1, elements / kClasses);
  OperationCall call{.attributes = defaultAttributes({.attributes = attributes()})};
  call.inputs = {{.dtype = dtype, .shape = {rows, kClasses}}, {.dtype = DType::I64, .shape = {rows}}};
  return call;
}

}  // namespace cross_entropy_parts
}  // namespace

BasicOperation cross_entropy() {
  using namespace cross_entropy_parts;
  return {
      .name = kName,
      .category = "Model",
      .summary = "Loss of a classifier: minus the logarithm of the softmax at the target.",
      .formula =
          "y = mean over rows of (1 - s) (l - x[target]) + s (l - mean(x)) + z l^2, l = log(sum(exp(x))), s "
          "label_smoothing, z lse_square_scale",
      .derivative =
          "dx = dy / n (softmax(x) (1 + 2 z l) - s / V), minus dy / n (1 - s) at the target; n the number of rows that "
          "are not ignored",
      .source =
          "torch.nn.CrossEntropyLoss; TransformerEngine parallel_cross_entropy; z-loss: Chowdhery et al. 2022, "
          "arXiv:2204.02311",
      .keywords = {"loss", "cross entropy", "nll", "softmax", "criterion", "z-loss", "labels", "perplexity"},
      .inputs = {{"x", "[..., V]", "Logits; the last axis is the classes."},
                 {.name = "target",
                  .shape = "[...]",
                  .help = "The class of each row, i64. Not given: drawn uniformly.",
                  .elements = PortElements::Counts,
                  .draw = drawTargets}},
      .outputs = {{"y", "[]", "The loss in f32; with reduction none, one per row."}},
      .residuals = {{"lse", "[...]", "Log-sum-exp of each row, in f32."}},
      .attributes = attributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
      .exampleCall = exampleCall,
  };
}

}  // namespace fuseline::ops
