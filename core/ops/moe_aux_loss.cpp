// MoEAuxLoss: the losses that keep the load of experts even, and the logits of routers small.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/random.h"
#include "core/ops/moe_loss_form.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace moe_aux_loss_parts {

constexpr const char* kName = "MoEAuxLoss";
/// Each has two inputs.
constexpr double kMostLayers = 1000;
constexpr double kMostExperts = 4096;

std::string portName(const char* stem, int layer) { return layer == 0 ? stem : fmt::format("{}{}", stem, layer); }

std::optional<Error> checkLayer(const AuxLossForm& form, int layer, Specs inputs) {
  const TensorSpec& x = inputs[static_cast<std::size_t>(form.logitsSlot(layer))];
  const TensorSpec& counts = inputs[static_cast<std::size_t>(form.countsSlot(layer))];
  const std::string port = portName("x", layer);
  if (x.shape.empty() || x.cols() != inputs[0].cols() || x.cols() == 0)
    return Error{fmt::format("{}: {} has the shape {}, but x has the shape {}; their last axes must be the experts.",
                             kName, port, toString(x.shape), toString(inputs[0].shape))};
  if (x.dtype != inputs[0].dtype)
    return Error{fmt::format("{}: {} is {}, but x is {}; all logits must have one dtype.", kName, port,
                             dtypeName(x.dtype), dtypeName(inputs[0].dtype))};
  if (counts.shape == Shape{x.cols()}) return std::nullopt;
  return Error{fmt::format("{}: {} has the shape {}; expected [{}], a number of tokens for each expert.", kName,
                           portName("tokens_per_expert", layer), toString(counts.shape), x.cols())};
}

Result<OperationSpecs> infer(const Attributes& attributes, Specs inputs) {
  const AuxLossForm form = auxLossForm(attributes);
  for (const char* const name : {"coeff", "z_loss_coeff"})
    if (auto error = checkNotNegative(kName, name, attributes)) return *error;
  for (int layer = 0; layer < form.layers; ++layer)
    if (auto error = checkLayer(form, layer, inputs)) return *error;
  if (form.topk > inputs[0].cols())
    return Error{.message = fmt::format("{}: topk is {}, but the last axis of x has {} experts.", kName, form.topk,
                                        inputs[0].cols()),
                 .subject = "topk"};
  return OperationSpecs{.outputs = {{.dtype = DType::F32, .shape = {}}}};
}

/// A subtraction, an exponential, a division and a multiply-add for each logit; backward four more.
FlopCount flops(const Attributes& attributes, Specs inputs) {
  std::int64_t logits = 0;
  const AuxLossForm form = auxLossForm(attributes);
  for (int layer = 0; layer < form.layers; ++layer)
    logits += inputs[static_cast<std::size_t>(form.logitsSlot(layer))].numElements();
  return {.forward = saturatedProduct(5, logits), .backward = saturatedProduct(8, logits)};
}

/// The numbers that the losses of all layers share. Tensors: [slot].
struct Load {
  template <class TensorAt>
  Load(const AuxLossForm& form, const TensorAt& tensorAt) {
    experts = tensorAt(form.logitsSlot(0)).cols();
    numTokens.assign(static_cast<std::size_t>(experts), 0.0);
    for (int layer = 0; layer < form.layers; ++layer) {
      tokens += tensorAt(form.logitsSlot(layer)).rows();
      std::ranges::transform(numTokens, tensorAt(form.countsSlot(layer)).values, numTokens.begin(), std::plus<>());
    }
  }

  std::int64_t experts = 0;
  std::int64_t tokens = 0;        // of all layers
  std::vector<double> numTokens;  // [E], of each expert
};

ReferenceForward forward(const Attributes& attributes, References inputs, References) {
  const AuxLossForm form = auxLossForm(attributes);
  const Load load(form, [&](int slot) -> const ReferenceTensor& { return inputs[static_cast<std::size_t>(slot)]; });
  TokenScores token(form.score, load.experts);
  double sum = 0.0;
  double squares = 0.0;
  for (int layer = 0; layer < form.layers; ++layer) {
    const ReferenceTensor& x = inputs[static_cast<std::size_t>(form.logitsSlot(layer))];
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      token.read(referenceRow(x, row, load.experts));
      for (std::size_t e = 0; e < load.numTokens.size(); ++e) sum += load.numTokens[e] * token.scores()[e];
      squares += token.logSumExp() * token.logSumExp();
    }
  }
  const double loss = form.loadFactor(load.experts, load.tokens) * sum + form.zFactor(load.tokens) * squares;
  return {.outputs = {{.shape = {}, .values = {loss}}}};
}

/// All inputs: the tokens of every layer count for the gradient of each.
OperationContext saveContext(const SaveArguments& arguments) {
  OperationContext context;
  if (!arguments.needs.anyInput()) return context;
  for (int slot = 0; slot < auxLossForm(arguments.attributes).numSlots(); ++slot)
    context.tensors.push_back({OperandKind::Input, slot});
  return context;
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues& saved, References gradOutputs) {
  const AuxLossForm form = auxLossForm(attributes);
  ReferenceBackward gradients{.inputs = std::vector<ReferenceTensor>(static_cast<std::size_t>(form.numSlots()))};
  if (!saved.has({OperandKind::Input, 0})) return gradients;
  const Load load(form, [&](int slot) -> const ReferenceTensor& { return saved.input(slot); });
  const double dy = gradOutputs[0].values.front();
  std::vector<double> gradScores = load.numTokens;
  for (double& gradient : gradScores) gradient *= dy * form.loadFactor(load.experts, load.tokens);
  TokenScores token(form.score, load.experts);
  for (int layer = 0; layer < form.layers; ++layer) {
    const ReferenceTensor& x = saved.input(form.logitsSlot(layer));
    ReferenceTensor dx = referenceZeros(x.shape);
    for (std::int64_t row = 0; row < x.rows(); ++row) {
      token.read(referenceRow(x, row, load.experts));
      token.gradient(gradScores, 2.0 * dy * form.zFactor(load.tokens) * token.logSumExp(),
                     referenceRow(dx, row, load.experts));
    }
    gradients.inputs[static_cast<std::size_t>(form.logitsSlot(layer))] = std::move(dx);
  }
  return gradients;
}

/// As many tokens for each expert as there are, rounded down.
Tensor drawCounts(const DrawArguments& arguments, int layer) {
  const AuxLossForm form = auxLossForm(arguments.attributes);
  const TensorSpec& x = arguments.inputs[static_cast<std::size_t>(form.logitsSlot(layer))];
  std::vector<double> shares(static_cast<std::size_t>(x.cols()));
  RandomStream(arguments.seed, arguments.name).uniforms(0, shares);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const auto slots = static_cast<double>(saturatedProduct(form.topk, x.rows()));
  for (double& share : shares) share = sum > 0.0 ? std::floor(share / sum * slots) : 0.0;
  return Tensor::fromDoubles({DType::I64, {x.cols()}}, shares);
}

std::vector<AttributeSpec> attributes() {
  return {
      {.name = "num_layers",
       .type = AttributeType::Integer,
       .defaultValue = std::int64_t{1},
       .minimum = 1,
       .maximum = kMostLayers,
       .unit = "layers",
       .help =
           "Number of layers whose load is balanced together, as in transformers; each has an input: x, x1 and so on."},
      {.name = "topk",
       .type = AttributeType::Integer,
       .defaultValue = std::int64_t{1},
       .minimum = 1,
       .maximum = kMostExperts,
       .unit = "experts",
       .help = "Experts of each token, k."},
      {.name = "score_function",
       .type = AttributeType::Text,
       .defaultValue = std::string("softmax"),
       .choices = {"softmax", "sigmoid", "sqrtsoftplus"},
       .help = "How a logit becomes a score. Other scores than softmax are divided by their sum."},
      {.name = "coeff",
       .type = AttributeType::Real,
       .defaultValue = 0.01,
       .minimum = 0.0,
       .help = "Value of the load-balancing loss if all experts have the same load. router_aux_loss_coef of "
               "transformers is coeff / topk."},
      {.name = "z_loss_coeff",
       .type = AttributeType::Real,
       .defaultValue = 0.0,
       .minimum = 0.0,
       .help = "Multiplies the mean square of the log-sum-exp of the logits (z-loss)."}};
}

std::vector<Port> inputsOf(int layers) {
  std::vector<Port> inputs;
  for (int layer = 0; layer < layers; ++layer)
    inputs.push_back({portName("x", layer), "[..., E]", "Logits of the router of a layer."});
  for (int layer = 0; layer < layers; ++layer)
    inputs.push_back({.name = portName("tokens_per_expert", layer),
                      .shape = "[E]",
                      .help = "From the TopKRouter of that layer, i64. Not given: drawn.",
                      .elements = PortElements::Counts,
                      .draw = [layer](const DrawArguments& given) { return drawCounts(given, layer); }});
  return inputs;
}

Result<FusibleOperation> specialise(const Attributes& given) {
  return BasicOperation{
      .name = kName,
      .category = "Mixture of experts",
      .summary =
          "Loss that is smallest when all experts get the same number of tokens, plus a z-loss for large router "
          "logits.",
      .formula =
          "y = coeff E / (k T^2) sum over e of n[e] sum over t of s(x)[t, e] + z_loss_coeff / T sum over t of l[t]^2, "
          "l = log(sum(exp(x)))",
      .derivative = "ds = coeff E / (k T^2) n dy through the scores, dl = 2 z_loss_coeff / T l dy; n has no gradient",
      .source =
          "TransformerEngine fused_compute_score_for_moe_aux_loss and fused_moe_aux_loss; Switch Transformers, "
          "arXiv:2101.03961; z-loss: ST-MoE, arXiv:2202.08906",
      .details =
          "T is the number of tokens of all layers, n their tokens for each expert. Even load gives coeff.\n"
          "Add y to the loss with AddExtraInput: its gradient is then that of the loss.",
      .keywords = {"moe", "auxiliary loss", "load balancing", "router", "z-loss", "experts", "switch"},
      .inputs = inputsOf(auxLossForm(given).layers),
      .outputs = {{"y", "[]", "The sum of the two losses, in f32."}},
      .attributes = attributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
}

OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kExperts = 128;
  OperationCall call{.attributes = defaultAttributes({.attributes = attributes()})};
  call.attributes.set("topk", std::int64_t{8});
  call.inputs = {{.dtype = dtype, .shape = {std::max<std::int64_t>(1, elements / kExperts), kExperts}},
                 {.dtype = DType::I64, .shape = {kExperts}}};
  return call;
}

}  // namespace moe_aux_loss_parts
}  // namespace

BasicOperation moe_aux_loss() {
  using namespace moe_aux_loss_parts;
  return structuredOperation(attributes(), specialise, exampleCall);
}

}  // namespace fuseline::ops
