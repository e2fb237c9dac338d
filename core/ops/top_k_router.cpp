// TopKRouter: which experts a token goes to, and with which weights.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/moe_form.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace top_k_router_parts {

constexpr const char* kName = "TopKRouter";
/// 8 bytes an index: no model has more.
constexpr double kMostExperts = 4096;

Error wrong(const char* attribute, std::string message) {
  return {.message = fmt::format("{}: {}", kName, message), .subject = attribute};
}

std::optional<Error> checkGroups(const RouterForm& form, std::int64_t numExperts) {
  if (form.numGroups == 0 && form.groupTopk == 0) return std::nullopt;
  if (form.numGroups == 0 || form.groupTopk == 0)
    return wrong(form.numGroups == 0 ? "num_groups" : "group_topk",
                 "num_groups and group_topk belong together. Set both or neither.");
  if (numExperts % form.numGroups != 0)
    return wrong("num_groups", fmt::format("num_groups is {}, but there are {} experts; expected a divisor of them.",
                                           form.numGroups, numExperts));
  if (form.groupTopk > form.numGroups || form.topk % form.groupTopk != 0)
    return wrong("group_topk", fmt::format("group_topk is {}; expected a divisor of topk, {}, and at most num_groups, "
                                           "{}.",
                                           form.groupTopk, form.topk, form.numGroups));
  const std::int64_t size = numExperts / form.numGroups;
  if (form.topk / form.groupTopk <= size) return std::nullopt;
  return wrong("group_topk",
               fmt::format("{} experts of each of {} groups would be chosen, but a group has {}. Raise group_topk.",
                           form.topk / form.groupTopk, form.groupTopk, size));
}

std::optional<Error> checkForm(const RouterForm& form, std::int64_t numExperts) {
  if (form.topk > numExperts)
    return wrong("topk", fmt::format("topk is {}, but the last axis of x has {} experts.", form.topk, numExperts));
  if (form.hasExpertBias && form.score == RouterScore::Softmax)
    return wrong("expert_bias",
                 "expert_bias works only with the score functions sigmoid and sqrtsoftplus, but score_function is "
                 "softmax. Change one of the two.");
  return checkGroups(form, numExperts);
}

Result<OperationSpecs> infer(const Attributes& attributes, Specs inputs) {
  const RouterForm form = routerForm(attributes);
  const TensorSpec& x = inputs[0];
  if (x.shape.empty() || x.cols() == 0)
    return Error{fmt::format("{}: x has the shape {}; its last axis must be the experts.", kName, toString(x.shape))};
  if (auto error = checkForm(form, x.cols())) return *error;
  if (auto error = checkFinite(kName, "scaling_factor", attributes)) return *error;
  TensorSpec probs = x;
  probs.shape.back() = form.topk;
  OperationSpecs specs{.outputs = {probs, {DType::I64, probs.shape}, {DType::I64, {x.cols()}}}};
  if (form.hasExpertBias) specs.parameters = {{DType::F32, {x.cols()}}};
  return specs;
}

/// A subtraction, an exponential, an addition and a division for each logit; comparisons do not count.
FlopCount flops(const Attributes&, Specs inputs) {
  const std::int64_t each = saturatedProduct(4, inputs[0].numElements());
  return {.forward = each, .backward = each};
}

ReferenceForward forward(const Attributes& attributes, References inputs, References parameters) {
  const RouterForm form = routerForm(attributes);
  const ReferenceTensor& x = inputs[0];
  Shape shape = x.shape;
  shape.back() = form.topk;
  ReferenceTensor probs = referenceZeros(shape), indices = referenceZeros(shape), counts = referenceZeros({x.cols()});
  TokenRouter router(form, x.cols());
  std::vector<std::int64_t> experts(static_cast<std::size_t>(form.topk));
  for (std::int64_t token = 0; token < x.rows(); ++token) {
    router.route(referenceRow(x, token, x.cols()),
                 form.hasExpertBias ? std::span<const double>(parameters[0].values) : std::span<const double>(),
                 experts, referenceRow(probs, token, form.topk));
    std::ranges::transform(experts, referenceRow(indices, token, form.topk).begin(),
                           [](std::int64_t expert) { return static_cast<double>(expert); });
    for (const std::int64_t expert : experts) counts.values[static_cast<std::size_t>(expert)] += 1.0;
  }
  return {.outputs = {std::move(probs), std::move(indices), std::move(counts)}};
}

/// The bias only chooses: its gradient is 0 and needs nothing.
OperationContext saveContext(const SaveArguments& arguments) {
  if (!arguments.needs.inputs[0]) return {};
  return {.tensors = {{OperandKind::Input, 0}, {OperandKind::Output, RouterForm::kIndices}}};
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues& saved, References gradOutputs) {
  const RouterForm form = routerForm(attributes);
  ReferenceBackward gradients{.inputs = {{}}};
  if (form.hasExpertBias) gradients.parameters = {referenceZeros(gradOutputs[RouterForm::kTokensPerExpert].shape)};
  if (!saved.has({OperandKind::Input, 0})) return gradients;
  const ReferenceTensor& x = saved.input();
  const ReferenceTensor& indices = saved.output(RouterForm::kIndices);
  ReferenceTensor dx = referenceZeros(x.shape);
  TokenRouter router(form, x.cols());
  for (std::int64_t token = 0; token < x.rows(); ++token) {
    const std::span<const double> chosen = referenceRow(indices, token, form.topk);
    const std::vector<std::int64_t> experts(chosen.begin(), chosen.end());
    router.gradient(referenceRow(x, token, x.cols()), experts, referenceRow(gradOutputs[0], token, form.topk),
                    referenceRow(dx, token, x.cols()));
  }
  gradients.inputs[0] = std::move(dx);
  return gradients;
}

AttributeSpec count(const char* name, const char* help) {
  return {.name = name,
          .type = AttributeType::Integer,
          .optional = true,
          .minimum = 1,
          .maximum = kMostExperts,
          .help = help};
}

std::vector<AttributeSpec> attributes() {
  return {{.name = "topk",
           .type = AttributeType::Integer,
           .defaultValue = std::int64_t{1},
           .minimum = 1,
           .maximum = kMostExperts,
           .unit = "experts",
           .help = "Experts of each token, k. TransformerEngine has no default."},
          {.name = "score_function",
           .type = AttributeType::Text,
           .defaultValue = std::string("softmax"),
           .choices = {"softmax", "sigmoid", "sqrtsoftplus"},
           .help = "Function from a logit to a score."},
          booleanAttribute("use_pre_softmax", false,
                           "Takes the softmax of all logits before experts are chosen, not of the chosen ones."),
          {.name = "norm_topk_prob",
           .type = AttributeType::Boolean,
           .optional = true,
           .help = "Divides the scores of the chosen experts by their sum. Not set: as in TransformerEngine, for "
                   "sigmoid and sqrtsoftplus with more than one expert."},
          count("num_groups", "Groups into which the experts are divided. Not set: none."),
          count("group_topk",
                "Groups whose experts can be chosen: those with the largest sum of their topk / "
                "group_topk best scores."),
          {.name = "scaling_factor",
           .type = AttributeType::Real,
           .defaultValue = 1.0,
           .help = "Multiplies the probabilities."},
          booleanAttribute("expert_bias", false,
                           "Adds a parameter to the scores by which experts are chosen, not to their probabilities."),
          booleanAttribute(
              "expert_bias_requires_grad", false,
              "expert_bias has no gradient: it is updated from the load of the experts, outside of backward.")};
}

Result<FusibleOperation> specialise(const Attributes& given) {
  BasicOperation op{
      .name = kName,
      .category = "Mixture of experts",
      .summary = "Chooses the experts of each token and their probabilities from the logits of a router.",
      .formula = "indices = the topk largest of s(x) + expert_bias; y = scaling_factor s(x)[indices], normalized",
      .derivative = "dx through the scores of the chosen experts; the choice has no gradient",
      .source = "TransformerEngine fused_topk_with_score_function; DeepSeek-V3, arXiv:2412.19437 (groups, expert_bias)",
      .details =
          "Experts are ordered by descending score; ties go to the lower index, and NaN counts as the largest.\n"
          "By default y is the softmax of the chosen logits. use_pre_softmax with norm_topk_prob gives the same.\n"
          "TransformerEngine's result has a column for each expert; here it has one for each chosen expert.",
      .keywords = {"moe", "mixture of experts", "router", "gate", "gating", "topk", "top-k", "routing", "experts"},
      .inputs = {{"x", "[..., E]", "Logits; the last axis is the experts."}},
      .outputs = {{"y", "[..., k]", "The probabilities of the chosen experts."},
                  {.name = "indices",
                   .shape = "[..., k]",
                   .help = "The chosen experts, i64.",
                   .elements = PortElements::Counts},
                  {.name = "tokens_per_expert",
                   .shape = "[E]",
                   .help = "Number of tokens per expert, i64.",
                   .elements = PortElements::Counts}},
      .attributes = attributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
  if (routerForm(given).hasExpertBias)
    op.parameters = {{"expert_bias", "[E]", "Added to the scores for the choice, in f32.",
                      [](const Attributes&, const TensorSpec&) { return Initialisation{}; }}};
  return op;
}

OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kExperts = 128;
  OperationCall call{.attributes = defaultAttributes({.attributes = attributes()})};
  call.attributes.set("topk", std::int64_t{8});
  call.inputs = {{.dtype = dtype, .shape = {std::max<std::int64_t>(1, elements / kExperts), kExperts}}};
  return call;
}

}  // namespace top_k_router_parts
}  // namespace

BasicOperation top_k_router() {
  using namespace top_k_router_parts;
  return structuredOperation(attributes(), specialise, exampleCall);
}

}  // namespace fuseline::ops
