// Rotary position embedding: turns pairs of channels of each head by angles that grow with the token's position.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference_math.h"
#include "core/ops/rotary_form.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace rotary_position_embedding_parts {

constexpr const char* kName = "RotaryPositionEmbedding";
constexpr std::int64_t kFlopsByElement = 3;

Error errorOf(std::string_view attribute, const std::string& message) {
  return {.message = fmt::format("{}: {}", kName, message), .subject = std::string(attribute)};
}

// ---- inference

std::optional<Error> checkWidth(const Attributes& given) {
  const double percent = given.real("rotary_percent");
  if (!(percent >= 0.0 && percent <= 1.0))
    return errorOf("rotary_percent", fmt::format("rotary_percent is {}, but it must be between 0 and 1.", percent));
  const RotaryForm form = rotaryForm(given);
  if (form.rotated % 2 == 0) return std::nullopt;
  return errorOf(
      "dim",
      fmt::format(
          "dim is {} and rotary_percent {}, so {} channels rotate; they rotate in pairs, so the number must be even.",
          form.dim, percent, form.rotated));
}

/// longrope: a factor for each pair.
std::optional<Error> checkFactors(const Attributes& given) {
  const auto pairs = static_cast<std::size_t>(rotaryForm(given).rotated / 2);
  for (const char* const name : {"short_factor", "long_factor"}) {
    if (!given.has(name))
      return errorOf(name, fmt::format("rope_type is longrope, but {} is not set; give its value.", name));
    const Result<std::vector<double>> factors = rotaryFactors(given, name);
    if (!factors) return errorOf(name, factors.error().message);
    if (factors->size() != pairs)
      return errorOf(name, fmt::format("{} has {} numbers, but {} pairs of channels rotate; expected one for each.",
                                       name, factors->size(), pairs));
  }
  if (given.integer("original_max_position_embeddings") > 1) return std::nullopt;
  return errorOf("original_max_position_embeddings", "original_max_position_embeddings is 1; longrope needs more.");
}

/// Attributes that a rope_type needs.
std::optional<Error> checkType(const Attributes& given) {
  const std::string& type = given.text("rope_type");
  if (type == "default") return std::nullopt;
  std::vector<std::string_view> needed = {"factor"};
  if (type != "linear") needed.emplace_back("original_max_position_embeddings");
  for (const std::string_view name : needed)
    if (!given.has(name))
      return errorOf(name, fmt::format("rope_type is {}, but {} is not set; give its value.", type, name));
  if (type == "longrope") return checkFactors(given);
  if (type == "llama3" && !(given.real("low_freq_factor") < given.real("high_freq_factor")))
    return errorOf("low_freq_factor", fmt::format("low_freq_factor is {}, but high_freq_factor is {}; it must be less.",
                                                  given.real("low_freq_factor"), given.real("high_freq_factor")));
  if (type == "dynamic" && rotaryForm(given).rotated <= 2)
    return errorOf("rope_type", "rope_type is dynamic, but only one pair of channels rotates; it needs two or more.");
  return std::nullopt;
}

std::optional<Error> checkNumbers(const Attributes& given) {
  for (const char* name : {"factor", "seq_len_interpolation_factor", "beta_fast", "beta_slow"})
    if (given.has(name))
      if (auto error = checkPositive(kName, name, given)) return error;
  const double base = given.real("rotary_base");
  if (std::isfinite(base) && base > 1.0) return std::nullopt;
  return errorOf("rotary_base", fmt::format("rotary_base is {}, but it must be finite and more than 1.", base));
}

/// Frequencies that depend on a length which only the inputs decide need it as an attribute.
std::optional<Error> checkLength(const Attributes& given, const RotaryForm& form, const TokenLayout& x) {
  const bool isPacked = form.format == QkvFormat::Thd;
  if (form.maxLength == 0) {
    if (!hasFrequenciesByLength(given) || !(isPacked || form.startPositionsSlot >= 0)) return std::nullopt;
    const std::string& type = given.text("rope_type");
    return errorOf("max_seq_len", fmt::format("the frequencies of {} depend on the longest sequence, which {} decide; "
                                              "set max_seq_len to its length.",
                                              type == "default" ? "seq_len_interpolation_factor" : "rope_type " + type,
                                              isPacked ? "cu_seqlens" : "start_positions"));
  }
  const std::int64_t length = rotaryLength(form, x);
  if (isPacked || length <= form.maxLength) return std::nullopt;
  return errorOf("max_seq_len", fmt::format("max_seq_len is {}, but x has {} tokens from position {} on; it must be at "
                                            "least {}.",
                                            form.maxLength, x.tokens, form.offset, length));
}

std::optional<Error> checkInputs(const RotaryForm& form, const TokenLayout& x, Specs inputs) {
  std::int64_t sequences = x.batch;
  if (form.cuSeqlensSlot >= 0) {
    const TensorSpec& sums = inputs[static_cast<std::size_t>(form.cuSeqlensSlot)];
    if (auto error = checkCuSeqlens(kName, "cu_seqlens", form.format, sums, x)) return error;
    sequences = numSequences(sums);
  }
  if (form.startPositionsSlot < 0) return std::nullopt;
  const Shape& starts = inputs[static_cast<std::size_t>(form.startPositionsSlot)].shape;
  if (starts == Shape{sequences}) return std::nullopt;
  return Error{fmt::format("{}: start_positions has the shape {}, but there are {} sequences; expected [{}].", kName,
                           toString(starts), sequences, sequences)};
}

Result<OperationSpecs> infer(const Attributes& attributes, Specs inputs) {
  for (const auto check : {checkWidth, checkType, checkNumbers})
    if (auto error = check(attributes)) return *error;
  const RotaryForm form = rotaryForm(attributes);
  const Result<TokenLayout> x = rotaryLayout(form, inputs[0].shape);
  if (!x) return x.error();
  if (auto error = checkLength(attributes, form, *x)) return *error;
  if (auto error = checkInputs(form, *x, inputs)) return *error;
  return OperationSpecs{.outputs = {inputs[0]}};
}

FlopCount flops(const Attributes& attributes, Specs inputs) {
  const RotaryForm form = rotaryForm(attributes);
  const std::int64_t elements = inputs[0].numElements() / form.dim * form.rotated;
  return {.forward = kFlopsByElement * elements, .backward = kFlopsByElement * elements};
}

// ---- compute

std::vector<std::int64_t> countsOf(const ReferenceTensor* tensor) {
  if (!tensor) return {};
  return {tensor->values.begin(), tensor->values.end()};
}

/// Turns every pair by its angle; back: by minus the angle. counts, starts: nullptr where the op has none.
ReferenceTensor rotated(const Attributes& attributes, const ReferenceTensor& x, const ReferenceTensor* sums,
                        const ReferenceTensor* starts, bool isBack) {
  const RotaryForm form = rotaryForm(attributes);
  const Result<TokenLayout> layout = rotaryLayout(form, x.shape);
  assert(layout);  // the graph has inferred this shape before
  const Result<std::vector<std::int64_t>> positions = rotaryPositions(form, *layout, countsOf(sums), countsOf(starts));
  if (!positions) throw std::invalid_argument(positions.error().message);
  const std::vector<double> frequencies = rotaryFrequencies(attributes, rotaryLength(form, *layout));
  const double factor = rotaryAttentionFactor(attributes);
  ReferenceTensor y = x;
  const auto turn = [&](std::int64_t head, double position) {
    for (std::int64_t m = 0; m < form.numPairs(); ++m) {
      const double angle = position * frequencies[static_cast<std::size_t>(m)];
      const double c = factor * std::cos(angle);
      const double n = factor * std::sin(angle) * (isBack ? -1.0 : 1.0);
      const auto first = static_cast<std::size_t>(head + form.firstOf(m));
      const auto second = static_cast<std::size_t>(head + form.secondOf(m));
      y.values[first] = c * x.values[first] - n * x.values[second];
      y.values[second] = c * x.values[second] + n * x.values[first];
    }
  };
  for (std::int64_t entry = 0; entry < layout->batch; ++entry)
    for (std::int64_t token = 0; token < layout->tokens; ++token) {
      const std::int64_t position = (*positions)[static_cast<std::size_t>(entry * layout->tokens + token)];
      for (std::int64_t head = 0; head < layout->heads && position >= 0; ++head)
        turn(layout->offset(entry, token, head), static_cast<double>(position));
    }
  return y;
}

ReferenceForward forward(const Attributes& attributes, References inputs, References) {
  const RotaryForm form = rotaryForm(attributes);
  const auto input = [&](int slot) { return slot < 0 ? nullptr : &inputs[static_cast<std::size_t>(slot)]; };
  return {
      .outputs = {rotated(attributes, inputs[0], input(form.cuSeqlensSlot), input(form.startPositionsSlot), false)}};
}

/// Only the positions.
OperationContext saveContext(const SaveArguments& arguments) {
  OperationContext context;
  if (!arguments.needs.inputs[0]) return context;
  const RotaryForm form = rotaryForm(arguments.attributes);
  for (const int slot : {form.cuSeqlensSlot, form.startPositionsSlot})
    if (slot >= 0) context.tensors.push_back({OperandKind::Input, slot});
  return context;
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues& saved, References gradOutputs) {
  const RotaryForm form = rotaryForm(attributes);
  const auto input = [&](int slot) { return slot < 0 ? nullptr : &saved.input(slot); };
  ReferenceBackward gradients;
  gradients.inputs.resize(
      static_cast<std::size_t>(1 + std::max({RotaryForm::kInput, form.cuSeqlensSlot, form.startPositionsSlot})));
  gradients.inputs[0] =
      rotated(attributes, gradOutputs[0], input(form.cuSeqlensSlot), input(form.startPositionsSlot), true);
  return gradients;
}

// ---- the op

AttributeSpec real(const char* name, AttributeValue value, const char* help) {
  const bool isOptional = std::holds_alternative<std::monostate>(value);
  return {.name = name,
          .type = AttributeType::Real,
          .defaultValue = std::move(value),
          .optional = isOptional,
          .help = help};
}

AttributeSpec positions(const char* name, const char* help) {
  return {.name = name, .type = AttributeType::Integer, .optional = true, .minimum = 1, .unit = "tokens", .help = help};
}

/// Those of TransformerEngine.
std::vector<AttributeSpec> ownAttributes() {
  AttributeSpec percent =
      real("rotary_percent", 1.0, "Share of the channels that rotate; the others pass through unchanged.");
  percent.minimum = 0.0;
  percent.maximum = 1.0;
  return {
      featuresAttribute("dim", "Channels of a head, D."),
      percent,
      real("seq_len_interpolation_factor", {},
           "Positions are divided by this factor if pretrained_max_position_embeddings is also set, as in "
           "arXiv:2306.15595."),
      positions("pretrained_max_position_embeddings",
                "Sequence length L in training. In a sequence longer than L * seq_len_interpolation_factor, positions "
                "are multiplied by L / its length."),
      real("rotary_base", 10000.0, "Pair m of R / 2 rotates by base^(-2 m / R) radians per token."),
      booleanAttribute(
          "interleaved", false,
          "Pairs are neighbors, as in GPT-J. Otherwise channel m goes with m + R / 2, as in GPT-NeoX and in "
          "Hugging Face's Llama."),
      qkvFormatAttribute("tensor_format",
                         "Order of the axes: sbhd, bshd, or thd with sequence lengths as a "
                         "further input; positions start again with each sequence."),
      {.name = "offset",
       .type = AttributeType::Integer,
       .defaultValue = std::int64_t{0},
       .minimum = 0,
       .unit = "tokens",
       .help = "Position of the first token of each sequence."},
      booleanAttribute("start_positions", false,
                       "Reads a further input that is added to the positions of each sequence, as with a KV cache."),
      positions("max_seq_len",
                "Length of the longest sequence, the positions before it included. dynamic, longrope and "
                "seq_len_interpolation_factor need it with start_positions or thd. Not set: offset + S.")};
}

AttributeSpec factors(const char* name, const char* help) {
  return {.name = name, .type = AttributeType::Text, .optional = true, .help = help};
}

/// Those of Hugging Face's rope_parameters.
std::vector<AttributeSpec> scalingAttributes() {
  return {
      {.name = "rope_type",
       .type = AttributeType::Text,
       .defaultValue = std::string("default"),
       .choices = {"default", "linear", "dynamic", "llama3", "yarn", "longrope"},
       .help = "Scaling of frequencies for longer sequences, with the names of Hugging Face. "
               "TransformerEngine has only seq_len_interpolation_factor."},
      real("factor", {}, "Factor by which the sequence length grows. Needed by every rope_type except default."),
      positions("original_max_position_embeddings",
                "Length before scaling. Needed by dynamic, llama3, yarn and longrope."),
      real("low_freq_factor", 1.0,
           "llama3: pairs that rotate less often than this over the original length are slowed down."),
      real("high_freq_factor", 4.0, "llama3: pairs that rotate more often than this are not scaled."),
      real("beta_fast", 32.0, "yarn: pairs that rotate more often than this over the original length are not scaled."),
      real("beta_slow", 1.0, "yarn: pairs that rotate less often than this are slowed down by the factor."),
      booleanAttribute("truncate", true, "yarn: the limits are rounded to whole pairs. false in GPT-OSS."),
      factors("short_factor", "longrope: divides the frequency of each pair, with commas between the numbers."),
      factors("long_factor",
              "longrope: divides the frequency of each pair in sequences longer than the original length."),
      real("attention_factor", {},
           "yarn, longrope: multiplies sines and cosines. Not set: 0.1 ln(factor) + 1 for yarn, sqrt(1 + ln(factor) / "
           "ln(original length)) for longrope."),
      real("mscale", {}, "yarn: with mscale_all_dim, sets the attention factor, as in DeepSeek."),
      real("mscale_all_dim", {}, "yarn: see mscale.")};
}

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> all = ownAttributes();
  for (AttributeSpec& spec : scalingAttributes()) all.push_back(std::move(spec));
  return all;
}

Tensor drawStarts(const DrawArguments& arguments, int slot) {
  constexpr double kMost = 64.0;
  const TensorSpec& spec = arguments.inputs[static_cast<std::size_t>(slot)];
  std::vector<double> starts(static_cast<std::size_t>(spec.numElements()));
  RandomStream(arguments.seed, arguments.name).uniforms(0, starts);
  for (double& start : starts) start = std::floor(start * kMost);
  return Tensor::fromDoubles(spec, starts);
}

std::vector<Port> inputsOf(const RotaryForm& form) {
  std::vector<Port> inputs = {{"x", "[S, B, H, D]", "Queries or keys. The heads may be merged: [S, B, H * D]."}};
  if (form.cuSeqlensSlot >= 0)
    inputs.push_back(cuSeqlensPort("cu_seqlens", form.format, form.cuSeqlensSlot, RotaryForm::kInput));
  if (form.startPositionsSlot >= 0)
    inputs.push_back(
        {.name = "start_positions",
         .shape = "[B]",
         .help = "Added to the positions of each sequence, i64. Not given: up to 63.",
         .elements = PortElements::Counts,
         .draw = [slot = form.startPositionsSlot](const DrawArguments& given) { return drawStarts(given, slot); }});
  return inputs;
}

Result<FusibleOperation> specialise(const Attributes& given) {
  return BasicOperation{
      .name = kName,
      .category = "Attention",
      .summary = "Rotates pairs of channels of each head by angles that grow with the token's position.",
      .formula = "y1 = x1 cos(p f) - x2 sin(p f), y2 = x2 cos(p f) + x1 sin(p f), p the position, f by pair",
      .derivative = "dx1 = dy1 cos(p f) + dy2 sin(p f); dx2 = dy2 cos(p f) - dy1 sin(p f)",
      .source =
          "TransformerEngine RotaryPositionEmbedding with apply_rotary_pos_emb; Su et al. 2021, arXiv:2104.09864; "
          "yarn: Peng et al. 2023, arXiv:2309.00071",
      .keywords = {"rope", "rotary", "position", "embedding", "llama", "yarn", "attention"},
      .inputs = inputsOf(rotaryForm(given)),
      .outputs = {{"y", "[S, B, H, D]", "The shape and dtype of x."}},
      .attributes = attributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
}

OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kHeads = 16;
  constexpr std::int64_t kChannels = 64;
  OperationCall call{.attributes = defaultAttributes({.attributes = attributes()})};
  call.attributes.set("dim", kChannels);
  call.inputs = {
      {.dtype = dtype, .shape = {std::max<std::int64_t>(1, elements / (kHeads * kChannels)), 1, kHeads, kChannels}}};
  return call;
}

}  // namespace rotary_position_embedding_parts
}  // namespace

BasicOperation rotary_position_embedding() {
  using namespace rotary_position_embedding_parts;
  return structuredOperation(attributes(), specialise, exampleCall);
}

}  // namespace fuseline::ops
