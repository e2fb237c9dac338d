// Calls of attention, rotary embedding, Split and Concat.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/structured_samples.h"

#include "core/ops/attention_form.h"
#include "core/ops/catalog.h"
#include "core/ops/rotary_form.h"
#include "tests/support/model_samples.h"

#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

namespace fuseline::testing {

namespace {

using List = std::vector<std::int64_t>;

std::string text(const char* value) { return value; }

Shape tokensShape(QkvFormat format, std::int64_t B, std::int64_t tokens, std::int64_t heads, std::int64_t channels) {
  switch (format) {
    case QkvFormat::Sbhd: return {tokens, B, heads, channels};
    case QkvFormat::Bshd: return {B, tokens, heads, channels};
    case QkvFormat::Thd: return {tokens, heads, channels};
  }
  return {};
}

TensorSpec specFor(const Port& port, const AttentionExtents& e, QkvFormat format) {
  if (port.name == "x") return {DType::F32, tokensShape(format, e.B, e.queries, e.H, e.D)};
  if (port.name == "k") return {DType::F32, tokensShape(format, e.B, e.keys, e.G, e.D)};
  if (port.name == "v") return {DType::F32, tokensShape(format, e.B, e.keys, e.G, e.Dv)};
  if (port.name == "core_attention_bias") return {DType::F32, {1, e.H, e.queries, e.keys}};
  if (port.name == "attention_mask") return {DType::I64, {e.B, 1, e.queries, e.keys}};
  return {DType::I64, {e.B + 1}};
}

OpSample withMergedHeads(OpSample sample) {
  for (std::size_t slot = 0; slot < 3; ++slot) {
    Shape& shape = sample.inputs[slot].shape;
    const std::int64_t channels = shape.back();
    shape.pop_back();
    shape.back() *= channels;
  }
  sample.label += " merged";
  return sample;
}

/// The masks, with keys and queries of other numbers, too.
std::vector<OpSample> maskSamples(const AttentionExtents& extents) {
  std::vector<OpSample> samples;
  AttentionExtents longer = extents;
  longer.keys += 3;
  AttentionExtents shorter = extents;
  shorter.queries += 2;
  for (const AttentionExtents& each : {extents, longer, shorter})
    for (const char* mask : {"no_mask", "causal", "causal_bottom_right", "padding", "padding_causal",
                             "padding_causal_bottom_right", "arbitrary"}) {
      samples.push_back(attentionSample(each, {{"attn_mask_type", text(mask)}}));
      const bool isCausal = std::string_view(mask).find("causal") != std::string_view::npos;
      const List window = isCausal ? List{1, 0} : List{1, 2};
      samples.push_back(attentionSample(each, {{"attn_mask_type", text(mask)}, {"window_size", window}}));
    }
  const AttributeValues topLeft = {
      {"attn_mask_type", text("no_mask")}, {"window_size", List{2, 1}}, {"bottom_right_diagonal", false}};
  samples.push_back(attentionSample(longer, topLeft));
  return samples;
}

std::vector<OpSample> formatSamples(const AttentionExtents& extents) {
  std::vector<OpSample> samples;
  for (const char* mask : {"padding", "padding_causal", "padding_causal_bottom_right"}) {
    AttentionExtents packed = extents;
    packed.queries *= extents.B;
    packed.keys *= extents.B;
    samples.push_back(attentionSample(packed, {{"qkv_format", text("thd")}, {"attn_mask_type", text(mask)}}));
    samples.push_back(attentionSample(extents, {{"qkv_format", text("bshd")}, {"attn_mask_type", text(mask)}}));
  }
  AttentionExtents grouped = extents;
  grouped.H *= 2;
  grouped.G = 1;
  samples.push_back(attentionSample(grouped));
  samples.push_back(withMergedHeads(attentionSample(grouped)));
  AttentionExtents narrow = extents;
  narrow.Dv += 1;
  samples.push_back(attentionSample(narrow));
  return samples;
}

std::vector<OpSample> softmaxSamples(const AttentionExtents& extents) {
  std::vector<OpSample> samples;
  for (const AttributeValues& given : std::vector<AttributeValues>{
           {{"softmax_scale", 0.3}},
           {{"softcap", 2.0}},
           {{"softmax_type", text("off-by-one")}},
           {{"softmax_type", text("learnable")}},
           {{"softmax_type", text("learnable")}, {"attn_mask_type", text("padding")}, {"softcap", 1.5}},
           {{"core_attention_bias_type", text("pre_scale_bias")}},
           {{"core_attention_bias_type", text("post_scale_bias")}, {"softcap", 2.0}},
           {{"core_attention_bias_type", text("alibi")}},
           {{"core_attention_bias_type", text("alibi")}, {"attn_mask_type", text("padding")}},
           {{"attention_dropout", 0.3}},
           {{"attention_dropout", 0.3}, {"softmax_type", text("learnable")}, {"seed", std::int64_t{7}}}})
    samples.push_back(attentionSample(extents, given));
  AttentionExtents packed = extents;
  packed.queries *= extents.B;
  packed.keys *= extents.B;
  samples.push_back(attentionSample(
      packed, {{"qkv_format", text("thd")}, {"attn_mask_type", text("padding")}, {"attention_dropout", 0.5}}));
  return samples;
}

void append(std::vector<OpSample> more, std::vector<OpSample>& samples) {
  std::ranges::move(more, std::back_inserter(samples));
}

// ---- other ops

OpSample rotarySample(const Shape& x, const AttributeValues& given, std::int64_t B = 2) {
  AttributeValues all = {{"dim", std::int64_t{8}}};
  all.insert(all.end(), given.begin(), given.end());
  OpSample sample = sampleOf("RotaryPositionEmbedding", all, {{DType::F32, x}});
  const RotaryForm form = rotaryForm(sample.attributes);
  if (form.cuSeqlensSlot >= 0) sample.inputs.push_back({DType::I64, {B + 1}});
  if (form.startPositionsSlot >= 0) sample.inputs.push_back({DType::I64, {B}});
  sample.label += " of " + toString(x);
  return sample;
}

std::vector<OpSample> rotarySamples() {
  const Shape heads = {5, 2, 3, 8};
  const AttributeValues longer = {{"factor", 4.0}, {"original_max_position_embeddings", std::int64_t{3}}};
  const auto scaled = [&](const char* type, AttributeValues more = {}) {
    more.insert(more.begin(), longer.begin(), longer.end());
    more.emplace_back("rope_type", text(type));
    return rotarySample(heads, more);
  };
  return {rotarySample({0, 1, 2, 8}, {}),
          rotarySample({1, 1, 8}, {}),
          rotarySample(heads, {{"interleaved", true}}),
          rotarySample(heads, {{"rotary_percent", 0.5}}),
          rotarySample(heads, {{"rotary_percent", 0.25}, {"interleaved", true}, {"offset", std::int64_t{9}}}),
          rotarySample({5, 2, 24}, {{"rotary_base", 500.0}}),
          rotarySample({2, 5, 3, 8}, {{"tensor_format", text("bshd")}}),
          rotarySample({2, 5, 3, 8}, {{"tensor_format", text("bshd")}, {"start_positions", true}}),
          rotarySample({9, 3, 8}, {{"tensor_format", text("thd")}}),
          rotarySample({9, 3, 8}, {{"tensor_format", text("thd")}, {"start_positions", true}}),
          rotarySample(
              heads, {{"seq_len_interpolation_factor", 2.0}, {"pretrained_max_position_embeddings", std::int64_t{2}}}),
          rotarySample({9, 3, 8}, {{"tensor_format", text("thd")},
                                   {"seq_len_interpolation_factor", 2.0},
                                   {"pretrained_max_position_embeddings", std::int64_t{2}},
                                   {"max_seq_len", std::int64_t{9}}}),
          scaled("linear"),
          scaled("dynamic", {{"start_positions", true}, {"max_seq_len", std::int64_t{200}}}),
          scaled("dynamic"),
          scaled("llama3"),
          scaled("yarn", {{"truncate", false}}),
          scaled("yarn", {{"mscale", 0.7}, {"mscale_all_dim", 1.0}}),
          rotarySample(heads, {})};
}

std::vector<OpSample> splitSamples() {
  const auto sample = [](const Shape& x, const List& sizes) {
    return sampleOf("Split", {{"sizes", sizes}}, {{DType::F32, x}});
  };
  return {sample({0, 6}, {4, 2}),      sample({1}, {1}),
          sample({7}, {3, 4}),         sample({5, 9}, {4, 3, 2}),
          sample({3, 2, 70}, {64, 6}), sample({2, 33}, {1, 16, 16})};
}

std::vector<OpSample> concatSamples() {
  const auto sample = [](const std::vector<Shape>& shapes) {
    std::vector<TensorSpec> inputs;
    for (const Shape& shape : shapes) inputs.push_back({DType::F32, shape});
    return sampleOf("Concat", {{"num_inputs", static_cast<std::int64_t>(shapes.size())}}, std::move(inputs));
  };
  return {sample({{0, 4}, {0, 2}}), sample({{3}}), sample({{5, 1}, {5, 7}, {5, 3}}), sample({{3, 2, 64}, {3, 2, 6}}),
          sample({{2, 16}, {2, 17}})};
}

std::vector<OpSample> expandSamples() {
  const auto sample = [](std::int64_t count, Shape shape) {
    return sampleOf("Expand", {{"count", count}}, {{DType::F32, std::move(shape)}});
  };
  return {sample(3, {0, 4}), sample(1, {5}), sample(2, {3, 7}), sample(40, {2, 3, 8}), sample(5, {4, 70})};
}

}  // namespace

OpSample sampleOf(const char* name, const AttributeValues& given, std::vector<TensorSpec> inputs) {
  const FusibleOperation& operation = *builtinOperations().find(name);
  OpSample sample{.label = name, .attributes = defaultAttributes(operation), .inputs = std::move(inputs)};
  for (const auto& [attribute, value] : given) {
    sample.attributes.set(attribute, value);
    sample.label += fmt::format(" {} {}", attribute, toString(value));
  }
  Result<OperationPointer> own = specialised(operation, sample.attributes);
  if (!own) throw std::invalid_argument(own.error().message);
  sample.operation = std::move(*own);
  return sample;
}

OpSample attentionSample(const AttentionExtents& extents, const AttributeValues& given) {
  AttributeValues all = {{"num_attention_heads", extents.H},
                         {"kv_channels", extents.D == extents.Dv ? List{extents.D} : List{extents.D, extents.Dv}}};
  if (extents.G != extents.H) all.emplace_back("num_gqa_groups", extents.G);
  all.insert(all.end(), given.begin(), given.end());
  OpSample sample = sampleOf("DotProductAttention", all, {});
  const AttentionForm form = attentionForm(sample.attributes);
  for (const Port& port : sample.operation->inputs) sample.inputs.push_back(specFor(port, extents, form.format));
  sample.label += fmt::format(" of {} queries, {} keys", extents.queries, extents.keys);
  return sample;
}

std::vector<OpSample> attentionSamples(const AttentionExtents& extents) {
  std::vector<OpSample> samples = maskSamples(extents);
  append(formatSamples(extents), samples);
  append(softmaxSamples(extents), samples);
  return samples;
}

Graph sampleGraph(const OpSample& sample, DType dtype, ExecutionMode pass) {
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (std::size_t slot = 0; slot < sample.inputs.size(); ++slot) {
    TensorSpec spec = sample.inputs[slot];
    if (isFloat(spec.dtype)) spec.dtype = dtype;
    inputs.push_back(builder.addInput(sample.operation->inputs[slot].name, std::move(spec)));
  }
  const Result<NodeId> node = builder.addNode("op", "op", sample.operation, sample.attributes, std::move(inputs));
  if (!node) throw std::invalid_argument(node.error().message);
  const std::vector<ValueId> outputs = builder.partial().node(*node).outputs;
  for (std::size_t port = 0; port < outputs.size(); ++port)
    builder.addOutput(sample.operation->outputs[port].name, outputs[port]);
  return std::move(builder).finish(pass);
}

std::vector<OpSample> structuredSamples(const FusibleOperation& operation) {
  if (operation.name == "RotaryPositionEmbedding") return rotarySamples();
  if (operation.name == "Split") return splitSamples();
  if (operation.name == "Concat") return concatSamples();
  if (operation.name == "Expand") return expandSamples();
  if (std::vector<OpSample> samples = modelSamples(operation.name); !samples.empty()) return samples;
  if (operation.name != "DotProductAttention")
    throw std::invalid_argument(operation.name + " has no samples; add them to structured_samples.cpp.");
  std::vector<OpSample> samples = {attentionSample({.B = 1, .queries = 0, .keys = 0, .H = 1, .G = 1, .D = 2, .Dv = 2}),
                                   attentionSample({.B = 1, .queries = 1, .keys = 1, .H = 1, .G = 1, .D = 2, .Dv = 2})};
  append(attentionSamples({}), samples);
  samples.push_back(attentionSample({.B = 2}, {{"qkv_format", text("bshd")}}));
  return samples;
}

}  // namespace fuseline::testing
