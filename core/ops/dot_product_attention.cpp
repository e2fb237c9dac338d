// Attention: each query row is a weighted mean of value rows, by the softmax of its products with the keys.
// The matrix of probabilities is never kept: backward computes it again from the log-sum-exp of each row.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention_form.h"
#include "core/ops/attention_reference.h"
#include "core/ops/offload.h"
#include "core/ops/parameters.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::ops {

namespace {
namespace dot_product_attention_parts {

constexpr const char* kName = "DotProductAttention";
constexpr double kMostHeads = 1 << 16;
constexpr double kMostChannels = 1 << 16;

Error errorOf(std::string_view attribute, const std::string& message) {
  return {.message = fmt::format("{}: {}", kName, message), .subject = std::string(attribute)};
}

// ---- attributes

std::optional<Error> checkHeads(const Attributes& given) {
  const AttentionForm form = attentionForm(given);
  if (form.heads % form.groups != 0)
    return errorOf("num_gqa_groups",
                   fmt::format("num_attention_heads is {}, but num_gqa_groups is {}; it must divide the heads.",
                               form.heads, form.groups));
  const std::size_t numSizes = given.integers("kv_channels").size();
  if (numSizes == 1 || numSizes == 2) return std::nullopt;
  return errorOf("kv_channels", fmt::format("kv_channels has {} sizes; expected one, or two: that of x and k, and that "
                                            "of v.",
                                            numSizes));
}

std::optional<Error> checkWindow(const Attributes& given) {
  if (!given.has("window_size")) return std::nullopt;
  const std::vector<std::int64_t>& window = given.integers("window_size");
  const std::string& mask = given.text("attn_mask_type");
  const auto refusal = [&](std::string_view expected) {
    return errorOf("window_size", fmt::format("window_size is {}, but attn_mask_type is {}; expected {}.",
                                              toString(window), mask, expected));
  };
  if (window.size() != 2) return refusal("two numbers of keys, to the left and to the right");
  if (mask.find("causal") != std::string::npos)
    return window[1] == 0 || window == std::vector<std::int64_t>{-1, -1}
               ? std::nullopt
               : std::optional(refusal("a right side of 0, as a causal mask sees no later keys"));
  const bool isUnbounded = window[0] < 0 && window[1] <= 0;
  const bool isBounded = window[0] >= 0 && window[1] >= 0;
  if (isUnbounded || isBounded) return std::nullopt;
  return refusal("both sides at least 0, or [-1, -1] for no window");
}

std::optional<Error> checkPacked(const Attributes& given) {
  if (given.text("qkv_format") != "thd") return std::nullopt;
  const std::string& mask = given.text("attn_mask_type");
  if (!mask.starts_with("padding"))
    return errorOf(
        "attn_mask_type",
        fmt::format("qkv_format is thd, but attn_mask_type is {}; sequences one after another need a padding "
                    "mask, such as padding_causal.",
                    mask));
  const std::string& bias = given.text("core_attention_bias_type");
  if (bias == "no_bias" || bias == "alibi") return std::nullopt;
  return errorOf("core_attention_bias_type",
                 fmt::format("qkv_format is thd, but core_attention_bias_type is {}; a bias needs the format sbhd or "
                             "bshd.",
                             bias));
}

std::optional<Error> checkNumbers(const Attributes& given) {
  if (const double p = given.real("attention_dropout"); !(p >= 0.0 && p < 1.0))
    return errorOf("attention_dropout",
                   fmt::format("attention_dropout is {}, but it must be at least 0 and less than 1.", p));
  if (auto error = checkNotNegative(kName, "softcap", given)) return error;
  return given.has("softmax_scale") ? checkFinite(kName, "softmax_scale", given) : std::nullopt;
}

std::optional<Error> checkAttributes(const Attributes& given) {
  for (const auto check : {checkHeads, checkWindow, checkPacked, checkNumbers})
    if (auto error = check(given)) return error;
  return std::nullopt;
}

// ---- inference and cost

std::optional<Error> checkDTypes(Specs inputs) {
  constexpr std::array kPorts = {"x", "k", "v"};
  for (std::size_t slot = 1; slot < kPorts.size(); ++slot)
    if (inputs[slot].dtype != inputs[0].dtype)
      return Error{fmt::format("{}: {} is {}, but x is {}; x, k and v must have one dtype.", kName, kPorts[slot],
                               dtypeName(inputs[slot].dtype), dtypeName(inputs[0].dtype))};
  return std::nullopt;
}

/// Checks the shape of a bias or a mask of scores.
std::optional<Error> checkScoresLike(const char* port, const Shape& shape, const AttentionLayouts& layouts) {
  const std::int64_t B = layouts.q.batch;
  const std::int64_t H = layouts.q.heads;
  const bool fits = shape.size() == 4 && (shape[0] == 1 || shape[0] == B) && (shape[1] == 1 || shape[1] == H) &&
                    shape[2] == layouts.q.tokens && shape[3] == layouts.k.tokens;
  if (fits) return std::nullopt;
  return Error{fmt::format("{}: {} has the shape {}; expected [{}, {}, {}, {}]; the first two may be 1 (broadcast).",
                           kName, port, toString(shape), B, H, layouts.q.tokens, layouts.k.tokens)};
}

std::optional<Error> checkFurtherInputs(const AttentionForm& form, const AttentionLayouts& layouts, Specs inputs) {
  const auto input = [&](int slot) -> const TensorSpec& { return inputs[static_cast<std::size_t>(slot)]; };
  if (form.hasBias())
    if (auto error = checkScoresLike("core_attention_bias", input(form.biasSlot).shape, layouts)) return error;
  if (form.maskSlot >= 0)
    if (auto error = checkScoresLike("attention_mask", input(form.maskSlot).shape, layouts)) return error;
  if (form.cuSeqlensQSlot < 0) return std::nullopt;
  const TensorSpec& q = input(form.cuSeqlensQSlot);
  const TensorSpec& kv = input(form.cuSeqlensKvSlot);
  if (auto error = checkCuSeqlens(kName, "cu_seqlens_q", form.format, q, layouts.q)) return error;
  if (auto error = checkCuSeqlens(kName, "cu_seqlens_kv", form.format, kv, layouts.k)) return error;
  if (q.shape == kv.shape) return std::nullopt;
  return Error{
      fmt::format("{}: cu_seqlens_q has the shape {}, but cu_seqlens_kv has {}; both must have one more entry than "
                  "there are sequences.",
                  kName, toString(q.shape), toString(kv.shape))};
}

Result<AttentionLayouts> layoutsOf(const AttentionForm& form, Specs inputs) {
  const Shape shapes[] = {inputs[0].shape, inputs[1].shape, inputs[2].shape};
  return attentionLayouts(form, shapes);
}

Result<OperationSpecs> infer(const Attributes& attributes, Specs inputs) {
  if (auto error = checkAttributes(attributes)) return *error;
  if (auto error = checkDTypes(inputs)) return *error;
  const AttentionForm form = attentionForm(attributes);
  const Result<AttentionLayouts> layouts = layoutsOf(form, inputs);
  if (!layouts) return layouts.error();
  if (auto error = checkFurtherInputs(form, *layouts, inputs)) return *error;
  const Shape& x = inputs[0].shape;
  TensorSpec y{.dtype = inputs[0].dtype, .shape = {x.begin(), x.begin() + (form.format == QkvFormat::Thd ? 1 : 2)}};
  y.shape.push_back(saturatedProduct(form.heads, form.vChannels));
  OperationSpecs specs{.outputs = {y}, .residuals = {{.dtype = DType::F32, .shape = lseShape(form, layouts->q)}}};
  if (form.softmax == SoftmaxType::Learnable) specs.parameters = {{.dtype = DType::F32, .shape = {form.heads}}};
  return specs;
}

/// The products of queries and keys, and of probabilities and values; lengths that only a run knows count as full, or
/// in thd as equal. Recomputation in backward is not counted.
FlopCount flops(const Attributes& attributes, Specs inputs) {
  const AttentionForm form = attentionForm(attributes);
  const Result<AttentionLayouts> layouts = layoutsOf(form, inputs);
  if (!layouts) return {};
  std::int64_t sequences = layouts->q.batch;
  if (form.format == QkvFormat::Thd)
    sequences = std::max<std::int64_t>(1, numSequences(inputs[static_cast<std::size_t>(form.cuSeqlensQSlot)]));
  const bool isPacked = form.format == QkvFormat::Thd;
  const std::int64_t queries = isPacked ? layouts->q.tokens / sequences : layouts->q.tokens;
  const std::int64_t keys = isPacked ? layouts->k.tokens / sequences : layouts->k.tokens;
  const std::int64_t pairs = saturatedProduct(saturatedProduct(sequences, form.heads), numPairs(form, queries, keys));
  const std::int64_t forward = saturatedProduct(pairs, 2 * (form.qkChannels + form.vChannels));
  return {.forward = forward, .backward = saturatedProduct(forward, 2)};
}

// ---- compute

void settle(Attributes& attributes, const GraphPlace& place) {
  attributes.set(kAttentionMaskName, fmt::format("{}.mask", place.id));
  if (!place.isTraining) attributes.set("attention_dropout", 0.0);
}

ReferenceForward forward(const Attributes& attributes, References inputs, References parameters) {
  return attentionForward(attentionForm(attributes), inputs, parameters);
}

/// All inputs, the output and the log-sum-exp; the offset only where it is trained with the rest.
OperationContext saveContext(const SaveArguments& arguments) {
  if (!arguments.needs.anyInput() && !arguments.needs.anyParameter()) return {};
  OperationContext context;
  for (int slot = 0; slot < static_cast<int>(arguments.inputs.size()); ++slot)
    context.tensors.push_back({OperandKind::Input, slot});
  if (attentionForm(arguments.attributes).softmax == SoftmaxType::Learnable)
    context.tensors.push_back({OperandKind::Parameter, AttentionForm::kOffset});
  context.tensors.push_back({OperandKind::Output, 0});
  context.tensors.push_back({OperandKind::Residual, AttentionForm::kLse});
  return context;
}

std::size_t numInputs(const AttentionForm& form) {
  return static_cast<std::size_t>(
      1 + std::max({AttentionForm::kValue, form.biasSlot, form.maskSlot, form.cuSeqlensKvSlot}));
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues& saved, References gradOutputs) {
  const AttentionForm form = attentionForm(attributes);
  return attentionBackward(form, saved, gradOutputs[0], numInputs(form));
}

// ---- the op

/// Masks about a quarter of the pairs, but not the first key of a row.
Tensor drawMask(const DrawArguments& arguments, int slot) {
  constexpr double kMaskedShare = 0.25;
  const TensorSpec& spec = arguments.inputs[static_cast<std::size_t>(slot)];
  std::vector<double> values(static_cast<std::size_t>(spec.numElements()));
  RandomStream(arguments.seed, arguments.name).uniforms(0, values);
  const auto cols = static_cast<std::size_t>(std::max<std::int64_t>(1, spec.cols()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % cols != 0 && values[i] < kMaskedShare ? 1.0 : 0.0;
  return Tensor::fromDoubles(spec, values);
}

std::vector<Port> inputsOf(const AttentionForm& form) {
  std::vector<Port> inputs = {
      {"x", "[S, B, H, D]", "Queries: S tokens of B sequences, H heads. The heads may be merged: [S, B, H * D]."},
      {"k", "[Skv, B, G, D]", "Keys. Query head h reads head h / (H / G)."},
      {"v", "[Skv, B, G, Dv]", "Values."}};
  if (form.hasBias())
    inputs.push_back({"core_attention_bias", "[B, H, S, Skv]", "Added to the scores. B or H may be 1 (broadcast)."});
  if (form.maskSlot >= 0)
    inputs.push_back({.name = "attention_mask",
                      .shape = "[B, H, S, Skv]",
                      .help = "i64; other than 0: the pair is masked out. B or H may be 1 (broadcast).",
                      .elements = PortElements::Counts,
                      .draw = [slot = form.maskSlot](const DrawArguments& given) { return drawMask(given, slot); }});
  if (form.cuSeqlensQSlot < 0) return inputs;
  inputs.push_back(cuSeqlensPort("cu_seqlens_q", form.format, form.cuSeqlensQSlot, AttentionForm::kQuery));
  inputs.push_back(cuSeqlensPort("cu_seqlens_kv", form.format, form.cuSeqlensKvSlot, AttentionForm::kKey));
  return inputs;
}

std::vector<ParameterSpec> parametersOf(const AttentionForm& form) {
  if (form.softmax != SoftmaxType::Learnable) return {};
  return {{"softmax_offset", "[H]", "Attention sink of each head, in f32.",
           [](const Attributes&, const TensorSpec&) { return Initialisation(); }}};
}

std::vector<AttributeSpec> sizeAttributes() {
  return {{.name = "num_attention_heads",
           .type = AttributeType::Integer,
           .minimum = 1,
           .maximum = kMostHeads,
           .unit = "heads",
           .help = "Heads of the queries, H."},
          {.name = "kv_channels",
           .type = AttributeType::IntegerList,
           .minimum = 1,
           .maximum = kMostChannels,
           .unit = "elements",
           .help = "Channels of a head, D, or two numbers: those of queries and keys, and those of values."},
          {.name = "num_gqa_groups",
           .type = AttributeType::Integer,
           .optional = true,
           .minimum = 1,
           .maximum = kMostHeads,
           .unit = "heads",
           .help = "Heads of the keys and values, G, each shared by H / G query heads. Not set: H."}};
}

std::vector<AttributeSpec> maskAttributes() {
  return {
      {.name = "attn_mask_type",
       .type = AttributeType::Text,
       .defaultValue = std::string("causal"),
       .choices = {"no_mask", "causal", "causal_bottom_right", "padding", "padding_causal",
                   "padding_causal_bottom_right", "arbitrary"},
       .help = "The keys that each query sees. causal: row i sees the keys up to i (top left), or, with bottom_right, "
               "up to i plus the keys that come before the queries. padding: sequence lengths are further inputs. "
               "arbitrary: a mask is a further input."},
      {.name = "window_size",
       .type = AttributeType::IntegerList,
       .optional = true,
       .minimum = -1,
       .unit = "keys",
       .help = "Number of keys that a query sees to the left and to the right of its position, both ends included; -1: "
               "all. A causal "
               "mask needs 0 on the right."},
      {.name = "bottom_right_diagonal",
       .type = AttributeType::Boolean,
       .optional = true,
       .help = "Align the diagonal of windows and ALiBi to the bottom right corner. Not set: on. The masks causal and "
               "padding_causal are always aligned to the top left."},
  };
}

std::vector<AttributeSpec> softmaxAttributes() {
  return {
      {.name = "softmax_scale",
       .type = AttributeType::Real,
       .optional = true,
       .help = "Scale of the scores, the products of queries and keys. Not set: 1 / sqrt(D)."},
      {.name = "softmax_type",
       .type = AttributeType::Text,
       .defaultValue = std::string("vanilla"),
       .choices = {"vanilla", "off-by-one", "learnable"},
       .help = "A sink adds one term to the sum of each row: 1 (off-by-one), or exp(softmax_offset) by head "
               "(learnable)."},
      {.name = "softcap",
       .type = AttributeType::Real,
       .defaultValue = 0.0,
       .minimum = 0.0,
       .help = "Limits scores to softcap tanh(score / softcap), as in Gemma 2. 0: no limit."},
      {.name = "core_attention_bias_type",
       .type = AttributeType::Text,
       .defaultValue = std::string("no_bias"),
       .choices = {"no_bias", "pre_scale_bias", "post_scale_bias", "alibi"},
       .help = "Bias added to the scores: a further input, added before (pre_scale_bias) or after (post_scale_bias) "
               "the scores are multiplied by softmax_scale, or a slope by distance (alibi)."},
      {.name = "attention_dropout",
       .type = AttributeType::Real,
       .defaultValue = 0.0,
       .minimum = 0.0,
       .maximum = 1.0,
       .help = "In training, the probability that an attention weight is dropped after the softmax; less than 1."},
      {.name = "seed",
       .type = AttributeType::Integer,
       .defaultValue = std::int64_t{0},
       .minimum = 0,
       .help = "Seed of the dropout mask, together with the op's id. The mask is the same in every run."},
  };
}

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> all = sizeAttributes();
  all.push_back(qkvFormatAttribute("qkv_format",
                                   "Order of the axes: sbhd is [S, B, H, D], bshd [B, S, H, D], and thd [T, H, D] with "
                                   "the tokens of all sequences one after another."));
  for (std::vector<AttributeSpec> part : {maskAttributes(), softmaxAttributes()})
    std::ranges::move(part, std::back_inserter(all));
  all.push_back({.name = "attention_type",
                 .type = AttributeType::Text,
                 .defaultValue = std::string("self"),
                 .choices = {"self", "cross"},
                 .help = "Self- or cross-attention. For information only: results do not change."});
  all.push_back(requiresGradAttribute("softmax_offset"));
  all.push_back(offloadAttribute());
  return all;
}

constexpr const char* kDetails =
    "S is split into tiles, so that memory grows with S, not with its square: the matrix of scores is never "
    "stored.\nBackward needs x, k, v, y and the log-sum-exp of each row. A row that attends to no key is 0, and so "
    "are\nits gradients. FLOP counts include only the pairs that the mask keeps. Backward counts twice as many FLOPs "
    "as\nforward, because the scores that it recomputes are not counted.\nIn TransformerEngine the mask and the bias "
    "are arguments of a call; softcap is an attribute since 2.20.";

Result<FusibleOperation> specialise(const Attributes& given) {
  const AttentionForm form = attentionForm(given);
  return BasicOperation{
      .name = kName,
      .category = "Attention",
      .summary = "Scaled dot-product attention with several heads: values weighted by the softmax of the scores.",
      .formula = "y = P v, P = softmax(softmax_scale x k^T + mask)",
      .derivative = "dv = P^T dy; dS = P (dy v^T - sum(dy y)); dx = softmax_scale dS k; dk = softmax_scale dS^T x",
      .source =
          "TransformerEngine te.DotProductAttention; Vaswani et al. 2017, arXiv:1706.03762; tiles: Dao et al. 2022, "
          "arXiv:2205.14135; groups: Ainslie et al. 2023, arXiv:2305.13245",
      .details = kDetails,
      .keywords = {"attention", "transformer", "softmax", "heads", "mha", "gqa", "mqa", "sdpa", "flash", "qkv",
                   "causal", "mask", "window", "sink", "softcap", "alibi"},
      .inputs = inputsOf(form),
      .parameters = parametersOf(form),
      .outputs = {{"y", "[S, B, H * Dv]", "The dtype of x; the heads are merged, as in TransformerEngine."}},
      .residuals = {{"lse", "[B, H, S]",
                     "Log-sum-exp of the scores of each row, in f32; [T, H] in thd; with a bias [2, ..], the largest "
                     "score apart."}},
      .attributes = attributes(),
      .settle = settle,
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
}

/// B is what is left: heads and tokens are those of a small model.
OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kHeads = 16;
  constexpr std::int64_t kChannels = 64;
  constexpr std::int64_t kTokens = 512;
  const std::int64_t B = std::max<std::int64_t>(1, elements / (kTokens * kHeads * kChannels));
  OperationCall call{.attributes = defaultAttributes({.attributes = attributes()})};
  call.attributes.set("num_attention_heads", kHeads);
  call.attributes.set("kv_channels", std::vector{kChannels});
  call.inputs.assign(3, {.dtype = dtype, .shape = {kTokens, B, kHeads, kChannels}});
  return call;
}

}  // namespace dot_product_attention_parts
}  // namespace

BasicOperation dot_product_attention() {
  using namespace dot_product_attention_parts;
  return structuredOperation(attributes(), specialise, exampleCall);
}

}  // namespace fuseline::ops
