// Minimal pipelines for every rule.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rule_samples.h"

#include "core/ops/catalog.h"
#include "core/quant/attention_quantizers.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace fuseline::testing {

namespace {

Link mode(Link link, std::string value) { return with(std::move(link), "tensor_parallel_mode", std::move(value)); }

Attributes fields(std::vector<std::pair<std::string, AttributeValue>> values) {
  Attributes fields;
  for (auto& [name, value] : values) fields.set(name, std::move(value));
  return fields;
}

Link save() { return link("MakeExtraOutput", "save"); }

const ChainOptions kReadBranch{.extraOutputs = {"save.extra"}};

Link formula(std::string y, std::string inputs = {}, std::string parameters = {}) {
  Link link = with(testing::link("Formula", "f"), "y", std::move(y));
  return with(with(std::move(link), "inputs", std::move(inputs)), "parameters", std::move(parameters));
}

/// A linear and one op, with and without bias, for every elementwise op with one output; and longer runs.
std::vector<RuleSample> linearEpilogueSamples() {
  std::vector<RuleSample> samples;
  for (const auto& op : builtinOperations().operations()) {
    if (!op->isElementwise() || op->outputs.size() != 1) continue;
    samples.push_back({op->name, {linear(16), link(op->name)}, {}});
    samples.push_back({"bias and " + op->name, {linear(16), link("Bias"), link(op->name)}, {}});
  }
  // Nothing moves in an Identity, and a bias alone is not an epilogue but the bias.
  std::erase_if(samples, [](const RuleSample& sample) { return sample.links.back().operation == "Identity"; });
  std::erase_if(samples, [](const RuleSample& sample) { return sample.label == "Bias"; });
  const Link bias = link("Bias", "bias");
  const Link add = link("AddExtraInput", "add");
  const Link dropout = link("Dropout", "drop");
  const Link skip = link("AddExtraInput", "add", "save.extra");
  const std::vector<RuleSample> longer = {
      {"bias, dropout, residual", {linear(16), bias, dropout, add}, {}},
      {"bias, dropout, residual in place", {save(), linear(16), bias, dropout, inPlace(skip)}, {}},
      {"the residual first", {save(), linear(16), bias, dropout, swapped(skip)}, {}},
      {"the same channel twice", {save(), linear(16), skip, link("GELU"), link("AddExtraInput", "", "save.extra")}, {}},
      {"more behind the residual in place", {linear(16), bias, inPlace(add), link("GELU")}, {}},
      {"the residual in place, by the other input", {save(), linear(16), bias, swapped(inPlace(skip))}, {}},
      {"scaled, residual, more", {linear(16), link("ConstantScale"), inPlace(add), link("SiLU")}, {}},
      {"two biases", {linear(16), bias, link("Bias"), link("ReLU")}, {}},
      {"a bias behind", {linear(16), link("SReLU"), bias}, {}},
      {"two activations", {linear(16), link("GELU"), bias, link("SReLU")}, {}},
      {"gated and more", {linear(32), bias, link("SwiGLU"), dropout, add}, {}},
      {"gated by turns",
       {linear(32), bias, with(link("SwiGLU"), "glu_interleave_size", std::int64_t{4}), link("ConstantScale")},
       {}},
      {"gated by turns, no bias", {linear(24), with(link("SwiGLU"), "glu_interleave_size", std::int64_t{4})}, {}},
      {"gated and scaled rows", {linear(32), link("ScaledSwiGLU"), link("ScaledSReLU")}, {}},
      {"formula", {linear(16), bias, formula("x * sigmoid(1.702 * x)"), add}, {}},
      {"formula of a second tensor", {linear(16), bias, formula("x * g + a * x", "g", "a = 0.5")}, {}},
  };
  samples.insert(samples.end(), longer.begin(), longer.end());
  return samples;
}

using Samples = std::map<std::string, std::vector<RuleSample>>;

Samples forwardLinearSamples() {
  const Link add = link("AddExtraInput", "add");
  const Link bias = link("Bias", "bias");
  return {
      {"ForwardLinearBiasAdd",
       {{"without bias", {linear(16), inPlace(add)}, {}},
        {"with bias", {linear(16), bias, inPlace(add)}, {}},
        {"residual from the start",
         {save(), linear(16), bias, inPlace(link("AddExtraInput", "add", "save.extra"))},
         {}}}},
      {"ForwardLinearScaleAdd",
       {{"plain", {linear(16), link("ConstantScale"), inPlace(add)}, {}},
        {"to nothing", {linear(16), with(link("ConstantScale"), "scale", 0.0), inPlace(add)}, {}}}},
      {"ForwardLinearBiasActivation", {{"plain", {linear(16), bias}, {}}}},
      {"ForwardLinearEpilogue", linearEpilogueSamples()},
  };
}

/// The last one is multiplied in quantized form, but its fusion's result is not quantized.
std::vector<RuleSample> activationLinearSamples() {
  const Link gelu = link("GELU", "act");
  const Link bias = link("Bias", "bias");
  return {{"GELU", {gelu, linear(16)}, {}},
          {"GELU by the error function", {with(gelu, "approximate", std::string("none")), linear(16)}, {}},
          {"ReLU", {link("ReLU"), linear(24)}, {}},
          {"with bias", {gelu, linear(16), bias}, {}},
          {"row-parallel", {gelu, with(mode(linear(16), "row"), "sequence_parallel", true)}, {}},
          {"behind a linear and its bias", {linear(32), link("Bias"), gelu, linear(16), bias}, {}},
          {"many rows", {gelu, linear(40), bias}, {}, {70, 272}},
          {"in FP8", {gelu, linear(16)}, {.recipe = "DelayedScaling"}, {16, 16}}};
}

Samples backwardLinearSamples() {
  const Link bias = link("Bias", "bias");
  return {
      {"BackwardLinearAdd",
       {{"branch read", {inPlace(save()), linear(16)}, kReadBranch},
        {"branch unread", {inPlace(save()), linear(16)}, {}}}},
      {"BackwardLinearScale",
       {{"plain", {linear(16), link("ConstantScale")}, {}},
        {"negative", {linear(24), with(link("ConstantScale"), "scale", -2.5)}, {}},
        {"many rows", {linear(16), with(link("ConstantScale"), "scale", 3.5), link("GELU")}, {}}}},
      {"BackwardActivationBias",
       {{"GELU", {linear(32), bias, link("GELU")}, {.recipe = "Float8CurrentScaling"}, {16, 16}},
        {"ReLU", {linear(32), bias, link("ReLU")}, {.recipe = "MXFP8BlockScaling"}, {32, 32}},
        {"delayed", {linear(16), bias, link("GELU"), linear(16)}, {.recipe = "DelayedScaling"}, {16, 16}}}},
      {"BackwardActivationLinear", activationLinearSamples()},
      {"BackwardLinearBias",
       {{"at the end", {linear(16), bias}, {}},
        {"before a norm", {linear(24), bias, link("LayerNorm")}, {}},
        {"with an upstream op", {link("GELU"), linear(16), bias}, {}},
        {"input without gradient", {linear(16), bias}, {.inputRequiresGradient = false}}}},
  };
}

Samples normSamples() {
  const Link add = link("AddExtraInput", "add");
  return {
      {"ForwardAddNorm",
       {{"RMSNorm", {add, link("RMSNorm")}, {}},
        {"LayerNorm", {add, link("LayerNorm")}, {}},
        {"with a branch between", {add, save(), link("RMSNorm")}, kReadBranch},
        {"the sum read outside, too", {add, link("LayerNorm")}, {.extraOutputs = {"add.y"}}},
        {"the sum read by a later op",
         {add, link("RMSNorm"), link("AddExtraInput", "add2", "add.y")},
         {.extraOutputs = {"add.y"}}},
        {"the norm on the branch",
         {add, save(), reading("save.extra", link("RMSNorm"))},
         {.extraOutputs = {"save.y"}}}}},
      {"BackwardAddRMSNorm",
       {{"branch read", {save(), link("RMSNorm")}, kReadBranch},
        {"branch unread", {save(), link("RMSNorm")}, {}},
        {"zero-centred", {save(), with(link("RMSNorm"), "zero_centered_gamma", true)}, kReadBranch}}},
      {"BackwardAddLayerNorm",
       {{"branch read", {save(), link("LayerNorm")}, kReadBranch},
        {"the norm on the branch", {save(), reading("save.extra", link("LayerNorm"))}, {.extraOutputs = {"save.y"}}}}},
  };
}

/// The numbers of each row's two experts are rows of a table.
std::vector<Link> lookedUp(std::vector<Link> after, const std::string& dtype = "f32", bool sharesWeight = false) {
  Link embed = reading("route.indices", with(link("Embedding", "embed"), "num_embeddings", std::int64_t{16}));
  embed = with(with(std::move(embed), "embedding_dim", std::int64_t{24}), "shares_weight", sharesWeight);
  embed = with(std::move(embed), "dtype", dtype);
  std::vector<Link> links = {with(link("TopKRouter", "route"), "topk", std::int64_t{2}), std::move(embed)};
  links.insert(links.end(), after.begin(), after.end());
  return links;
}

/// The router's numbers have no gradient.
Samples embeddingSamples() {
  const ChainOptions plain{.inputRequiresGradient = false};
  const ChainOptions branch{.inputRequiresGradient = false, .extraOutputs = {"save.extra"}};
  const ChainOptions shared{.inputRequiresGradient = false, .extraOutputs = {"embed.weight"}};
  return {
      {"ForwardEmbeddingNorm",
       {{"RMSNorm", lookedUp({link("RMSNorm")}), plain},
        {"LayerNorm", lookedUp({link("LayerNorm")}), plain},
        {"in bf16", lookedUp({save(), link("RMSNorm")}, "bf16"), branch},
        {"with a branch between", lookedUp({save(), link("RMSNorm")}), branch},
        {"the rows read by a later op", lookedUp({link("RMSNorm"), link("AddExtraInput", "add", "embed.y")}), plain},
        {"a shared table", lookedUp({save(), link("RMSNorm")}, "f32", true), shared}}}};
}

/// Each token goes to two of as many experts as it has elements, and its rows are added again.
std::vector<Link> routed(std::vector<Link> after) {
  Link permute =
      reading("save.extra", with(link("MoEPermute", "permute", "route.indices"), "num_experts", std::int64_t{16}));
  Link unpermute = reading("permute.y", link("MoEUnpermute", "unpermute", "permute.row_id_map"));
  unpermute.furtherFrom = {"route.y"};
  std::vector<Link> links = {save(), with(link("TopKRouter", "route"), "topk", std::int64_t{2}), std::move(permute),
                             std::move(unpermute)};
  links.insert(links.end(), after.begin(), after.end());
  return links;
}

Samples routingSamples() {
  const Link add = link("AddExtraInput", "add");
  return {{"ForwardUnpermuteAdd",
           {{"the residual", routed({add}), {}},
            {"by the other input", routed({swapped(add)}), {}},
            {"shared expert and residual in place", routed({add, inPlace(link("AddExtraInput", "residual"))}), {}},
            {"the sum is an output, too",
             routed({add, link("AddExtraInput", "b"), link("GELU")}),
             {.extraOutputs = {"b.y"}}},
            {"a branch behind",
             routed({add, link("MakeExtraOutput", "branch"), link("RMSNorm")}),
             {.extraOutputs = {"branch.extra"}}}}}};
}

Samples chainSamples() {
  const Link add = link("AddExtraInput", "add");
  const Link bias = link("Bias", "bias");
  return {
      {"ForwardElementwiseChain",
       {{"two ops", {bias, link("GELU")}, {}},
        {"five ops", {link("ConstantScale"), bias, link("GELU"), add, link("Identity"), link("ConstantScale")}, {}},
        {"gated first", {link("SwiGLU"), bias, link("ConstantScale")}, {}},
        {"scaled rows first", {link("ScaledSwiGLU"), bias, link("ScaledSReLU")}, {}},
        {"dropouts", {link("Dropout"), bias, link("Dropout"), add}, {}},
        {"with a branch inside", {bias, save(), link("GELU")}, kReadBranch},
        {"read outside, too", {bias, link("GELU"), link("ConstantScale")}, {.extraOutputs = {"bias.y"}}},
        {"both ways of a branch",
         {bias, link("GELU"), link("AddExtraInput", "add", "bias.y"), link("ConstantScale")},
         {}},
        {"the residual first", {save(), link("GELU"), swapped(link("AddExtraInput", "add", "save.extra"))}, {}},
        {"on along the branch", {bias, save(), reading("save.extra", link("GELU"))}, {.extraOutputs = {"save.y"}}}}},
      {"BackwardBiasSwiGLU",
       {{"plain", {bias, link("SwiGLU")}, {}},
        {"interleaved", {bias, with(link("SwiGLU"), "glu_interleave_size", std::int64_t{4})}, {}}}},
      {"BackwardElementwiseChain",
       {{"two ops", {bias, link("GELU")}, {}},
        {"four ops", {link("ConstantScale"), bias, link("GELU"), add}, {}},
        {"gated first", {link("SwiGLU"), bias}, {}},
        {"scaled rows first", {link("ScaledSwiGLU"), bias, link("ScaledSReLU")}, {}},
        {"dropouts", {link("Dropout"), bias, link("Dropout"), add}, {}},
        {"with a branch inside", {bias, save(), link("GELU")}, kReadBranch},
        {"the residual first", {save(), link("GELU"), swapped(link("AddExtraInput", "add", "save.extra"))}, {}},
        {"on along the branch", {bias, save(), reading("save.extra", link("GELU"))}, {.extraOutputs = {"save.y"}}}}},
  };
}

Samples jointSamples() {
  const Link add = link("AddExtraInput", "add");
  return {
      {"ForwardBackwardSwiGLULinear",
       {{"plain", {link("SwiGLU"), linear(24)}, {}},
        {"interleaved", {with(link("SwiGLU"), "glu_interleave_size", std::int64_t{4}), linear(24)}, {}},
        {"with a residual", {link("SwiGLU"), linear(24), add}, {}},
        {"with a residual, by the other input", {link("SwiGLU"), linear(24), swapped(add)}, {}},
        {"with an upstream op", {link("RMSNorm"), link("SwiGLU"), linear(24)}, {}}}},
      {"ForwardBackwardLinearCrossEntropy",
       {{"plain", {linear(24), link("CrossEntropy")}, {}},
        {"tied, of rows of length 1", {link("L2Normalization"), link("TiedLinear"), link("CrossEntropy")}, {}},
        {"a loss a row", {linear(24), with(link("CrossEntropy"), "reduction", std::string("none"))}, {}},
        {"the sum", {linear(24), with(link("CrossEntropy"), "reduction", std::string("sum"))}, {}},
        {"smoothed, with the square of the log-sum-exp",
         {linear(24), with(with(link("CrossEntropy"), "label_smoothing", 0.1), "lse_square_scale", 0.01)},
         {}},
        {"ignored rows", {linear(5), with(link("CrossEntropy"), "ignore_index", std::int64_t{2})}, {}, {40, 16}},
        {"with an upstream op", {link("RMSNorm"), linear(24), link("CrossEntropy")}, {}, {2, 3, 16}}}},
  };
}

std::vector<Link> joined(std::vector<Link> links, const std::vector<Link>& more) {
  links.insert(links.end(), more.begin(), more.end());
  return links;
}

const std::array<std::string, 3> kSplitParts = {"split.y", "split.y1", "split.y2"};
const std::array<std::string, 3> kRotatedParts = {"rope_q.y", "rope_k.y", "split.y2"};

std::vector<Link> packedAttentionLinks(std::int64_t heads, std::int64_t groups) {
  return joined(packedHeads(heads, groups), {attentionOf(heads, groups, kSplitParts)});
}

/// Every head has its queries, keys and values, as in GPT-NeoX.
std::vector<Link> splitByHead(std::vector<Link> links) {
  links[1] = with(links[1], "shape", std::vector<std::int64_t>{-1, 1, 2, 24});
  links[2] = with(links[2], "sizes", std::vector<std::int64_t>{8, 8, 8});
  return links;
}

/// change: of each rotary embedding.
std::vector<Link> rotaryAttentionLinks(
    std::int64_t heads, std::int64_t groups, const std::function<Link(Link)>& change = [](Link link) { return link; }) {
  return joined(packedHeads(heads, groups),
                {change(rotaryOf("rope_q", "split.y")), change(rotaryOf("rope_k", "split.y1")),
                 attentionOf(heads, groups, kRotatedParts)});
}

Samples attentionSamples() {
  const auto changed = [](std::vector<Link> links, const std::string& attribute, AttributeValue value) {
    links.back() = with(links.back(), attribute, std::move(value));
    return links;
  };
  std::vector<Link> keysFirst = rotaryAttentionLinks(2, 2);
  std::swap(keysFirst[3], keysFirst[4]);
  return {
      {"ForwardBackwardSplitAttention",
       {{"causal", packedAttentionLinks(2, 2), {}},
        {"shared keys, and an output before it", joined(packedAttentionLinks(4, 1), {link("GELU")}), {}},
        {"padding", changed(packedAttentionLinks(2, 1), "attn_mask_type", std::string("padding")), {}},
        {"learnable sinks", changed(packedAttentionLinks(2, 2), "softmax_type", std::string("learnable")), {}},
        {"rotated", rotaryAttentionLinks(4, 2), {}},
        {"split by head", splitByHead(packedAttentionLinks(2, 2)), {}},
        {"split by head, padding",
         splitByHead(changed(packedAttentionLinks(2, 2), "attn_mask_type", std::string("padding_causal"))),
         {}},
        {"split by head, learnable sinks",
         splitByHead(changed(packedAttentionLinks(2, 2), "softmax_type", std::string("learnable"))),
         {}},
        {"split by head, rotated", splitByHead(rotaryAttentionLinks(2, 2)), {}},
        {"rotated, keys first", keysFirst, {}},
        {"rotated by neighbors, half of the channels",
         rotaryAttentionLinks(
             2, 1, [](Link link) { return with(with(std::move(link), "interleaved", true), "rotary_percent", 0.5); }),
         {}},
        {"rotated, without a mask",
         changed(rotaryAttentionLinks(2, 2), "attn_mask_type", std::string("no_mask")),
         {}}}}};
}

/// A split and rotary embeddings whose results are outputs, perhaps after a bias.
std::vector<Link> splitRotaryLinks(bool hasBias, std::vector<Link> rotaries) {
  std::vector<Link> links = packedHeads(4, 2);
  if (hasBias) links.insert(links.begin() + 2, link("Bias", "bias"));
  return joined(std::move(links), rotaries);
}

const ChainOptions kSplitOutputs{.extraOutputs = {"rope_q.y", "split.y2"}};

std::vector<RuleSample> splitRotarySamples(bool hasBias) {
  const Link q = rotaryOf("rope_q", "split.y");
  const Link k = rotaryOf("rope_k", "split.y1");
  const auto partly = [](Link link) { return with(with(std::move(link), "interleaved", true), "rotary_percent", 0.5); };
  const auto byStarts = [](Link link) { return with(std::move(link), "start_positions", true); };
  return {{"queries and keys", splitRotaryLinks(hasBias, {q, k}), kSplitOutputs},
          {"values unread", splitRotaryLinks(hasBias, {q, k}), {.extraOutputs = {"rope_q.y"}}},
          {"keys alone", splitRotaryLinks(hasBias, {k}), {.extraOutputs = {"split.y", "split.y2"}}},
          {"neighbors, half of the channels", splitRotaryLinks(hasBias, {partly(q), partly(k)}), kSplitOutputs},
          {"start positions, keys first",
           splitRotaryLinks(hasBias, {byStarts(k), byStarts(q)}),
           {.extraOutputs = {"rope_k.y", "split.y2"}}}};
}

Samples splitRotarySamplesOfBothPasses() {
  return {{"ForwardSplitRotary", splitRotarySamples(false)},
          {"BackwardSplitRotary", splitRotarySamples(false)},
          {"ForwardBiasSplitRotary", splitRotarySamples(true)},
          {"BackwardBiasSplitRotary", splitRotarySamples(true)}};
}

/// Heads of 8 channels, each normalized and rotated.
std::vector<Link> normRotaryLinks(Link norm, const Link& rotary) {
  norm.id = "norm";
  norm.attributes.set("normalized_shape", std::vector<std::int64_t>{8});
  return {linear(32, "q"), with(link("Reshape"), "shape", std::vector<std::int64_t>{-1, 1, 4, 8}), std::move(norm),
          rotary};
}

Samples normRotarySamples() {
  const Link rotary = rotaryOf("rope", "norm.y");
  const Link partly = with(with(rotary, "interleaved", true), "rotary_percent", 0.5);
  const std::vector<RuleSample> samples = {
      {"plain", normRotaryLinks(link("RMSNorm"), rotary), {}},
      {"zero-centred, half of the channels",
       normRotaryLinks(with(link("RMSNorm"), "zero_centered_gamma", true), partly),
       {}},
      {"start positions", normRotaryLinks(link("RMSNorm"), with(rotary, "start_positions", true)), {}}};
  return {{"ForwardRMSNormRotary", samples}, {"BackwardRMSNormRotary", samples}};
}

std::vector<RefusalSample> normRotaryRefusals() {
  const Link rotary = rotaryOf("rope", "norm.y");
  std::vector<Link> wholeRow = normRotaryLinks(link("RMSNorm"), rotary);
  wholeRow[1] = with(wholeRow[1], "shape", std::vector<std::int64_t>{-1, 1, 32});
  wholeRow[2] = with(wholeRow[2], "normalized_shape", std::vector<std::int64_t>{32});
  return {{0, DType::BF16, wholeRow, {}},
          {1, DType::BF16, normRotaryLinks(with(link("RMSNorm"), "dtype", std::string("f32")), rotary), {}}};
}

std::vector<RefusalSample> splitRotaryRefusals(bool hasBias) {
  std::vector<Link> perHead =
      splitRotaryLinks(hasBias, {rotaryOf("rope_q", "split.y"), rotaryOf("rope_k", "split.y1")});
  perHead[0] = linear(48, "qkv");
  perHead[1] = with(perHead[1], "shape", std::vector<std::int64_t>{-1, 1, 2, 24});
  Link& split = perHead[hasBias ? 3 : 2];
  split = with(split, "sizes", std::vector<std::int64_t>{8, 8, 8});
  std::vector<RefusalSample> refusals = {{0, DType::BF16, perHead, kSplitOutputs}};
  if (!hasBias) return refusals;
  std::vector<Link> wide = splitRotaryLinks(true, {rotaryOf("rope_q", "split.y"), rotaryOf("rope_k", "split.y1")});
  wide[2] = with(wide[2], "dtype", std::string("f32"));
  refusals.push_back({1, DType::BF16, wide, kSplitOutputs});
  return refusals;
}

/// Refusals of the fusion of a Split and attention.
std::vector<RefusalSample> splitAttentionRefusals() {
  std::vector<Link> fourParts = packedAttentionLinks(2, 2);
  fourParts[0] = linear(56, "qkv");
  fourParts[1] = with(fourParts[1], "shape", std::vector<std::int64_t>{-1, 1, 56});
  fourParts[2] = with(fourParts[2], "sizes", std::vector<std::int64_t>{16, 16, 16, 8});
  std::vector<Link> swappedParts = packedAttentionLinks(2, 2);
  std::swap(swappedParts.back().extraFrom, swappedParts.back().furtherFrom.front());
  const auto batchFirst = [](Link link) { return with(std::move(link), "tensor_format", std::string("bshd")); };
  const auto byStarts = [](Link link) { return with(std::move(link), "start_positions", true); };
  return {{0, DType::BF16, fourParts, {}},
          {0, DType::BF16, swappedParts, {}},
          {1, DType::BF16, rotaryAttentionLinks(2, 2, batchFirst), {}},
          {1, DType::BF16, rotaryAttentionLinks(2, 2, byStarts), {}},
          {2, DType::BF16, fp8AttentionLinks(), fp8Attention("Float8CurrentScaling"), {16, 16}}};
}

/// Sizes that each recipe quantizes, with enough rows for several blocks.
Samples fusedOperandSamples() {
  const ChainOptions delayed{.recipe = "DelayedScaling"};
  const ChainOptions delayedWithOutput{.extraOutputs = {"a.y"}, .recipe = "DelayedScaling"};
  const ChainOptions blocks{.recipe = "Float8BlockScaling"};
  const ChainOptions mxfp8{.recipe = "MXFP8BlockScaling"};
  const ChainOptions current{.recipe = "Float8CurrentScaling"};
  return {
      {"ForwardQuantize",
       {{"norm", {link("RMSNorm"), linear(32)}, delayed, {64, 32}},
        {"norm, blocks of 128 rows", {link("LayerNorm"), linear(128)}, blocks, {256, 128}},
        {"activation", {link("GELU"), linear(32)}, mxfp8, {64, 32}},
        {"gated", {link("SwiGLU"), linear(32)}, mxfp8, {64, 64}},
        {"GEMM", {linear(32), linear(32)}, delayed, {64, 32}},
        {"GEMM with a bias", {linear(32), link("Bias"), linear(32)}, delayed, {64, 32}},
        {"a result that is an output, too", {link("GELU", "a"), linear(32)}, delayedWithOutput, {64, 32}}}},
      {"ForwardPermuteQuantize",
       {{"scales of the past", expertLinks(32), delayed, {16, 32}},
        {"blocks of 32", expertLinks(32), mxfp8, {16, 32}},
        {"blocks of 128", expertLinks(128), blocks, {16, 128}},
        {"rows that are an output, too",
         expertLinks(32),
         {.extraOutputs = {"permute.y"}, .recipe = "MXFP8BlockScaling"},
         {16, 32}}}},
      {"ForwardAttentionQuantize",
       {{"split", fp8AttentionLinks(), fp8Attention("DelayedScaling"), {16, 16}},
        {"linears", fp8AttentionOfLinears({.hasRotary = true}), fp8Attention("DelayedScaling"), {16, 16}}}},
      {"ForwardAttentionAmax", {{"split", fp8AttentionLinks(), fp8Attention("Float8CurrentScaling"), {16, 16}}}},
      {"BackwardQuantize",
       {{"activation", {linear(32), link("GELU")}, delayed, {64, 32}},
        {"gated", {linear(64), link("SwiGLU")}, mxfp8, {64, 32}},
        {"norm", {linear(128), link("LayerNorm")}, blocks, {256, 128}},
        {"GEMM", {linear(32), linear(32)}, delayed, {64, 32}},
        {"L2", {linear(32), link("L2Normalization")}, delayed, {64, 32}}}},
      {"ForwardAmax",
       {{"norm", {link("LayerNorm"), linear(32)}, current, {64, 32}},
        {"activation", {link("GELU"), linear(32)}, current, {64, 32}},
        {"gated", {link("SwiGLU"), linear(32)}, current, {64, 64}},
        {"blocks of FP4 without a transform",
         {link("RMSNorm"), linear(32)},
         {.recipe = "NVFP4BlockScaling", .recipeFields = fields({{"disable_rht", true}})},
         {64, 32}},
        {"two readers",
         {link("GELU", "a"), linear(32, "q"), reading("a.y", linear(32)), link("AddExtraInput", "add", "q.y")},
         current,
         {64, 32}}}},
      {"BackwardAmax",
       {{"activation", {linear(32), link("GELU")}, current, {64, 32}},
        {"gated", {linear(64), link("SwiGLU")}, current, {64, 32}},
        {"norm", {linear(32), link("RMSNorm")}, current, {64, 32}},
        {"L2", {linear(32), link("L2Normalization")}, current, {64, 32}}}},
  };
}

const FusionTarget kTwoRanks{.capability = ComputeCapability{9, 0}, .ranks = 2};

Link userbuffers(Link link) { return with(std::move(link), "userbuffers_comm_name", std::string("fc1")); }

/// Both passes of Userbuffers have the same pipelines.
Link parallel(std::string value) {
  return with(mode(userbuffers(linear(16)), std::move(value)), "sequence_parallel", true);
}

std::vector<RuleSample> userbuffersSamples() {
  const Link bias = link("Bias", "bias");
  const Link scatter = link("ReduceScatter");
  std::vector<RuleSample> samples = {
      {"column", {parallel("column")}, {}},
      {"column with bias", {parallel("column"), bias}, {}},
      {"row", {parallel("row")}, {}},
      {"row, its bias outside", {parallel("row"), bias}, {}},
      {"before a sum", {userbuffers(linear(16)), scatter}, {}},
      {"with bias before a sum", {userbuffers(linear(16)), bias, scatter}, {}},
      {"in FP8", {parallel("column"), bias, link("GELU")}, {.recipe = "Float8CurrentScaling"}, {16, 16}},
  };
  for (RuleSample& sample : samples) sample.target = kTwoRanks;
  return samples;
}

Samples userbuffersSamplesOfBothPasses() {
  return {{"UserbuffersForwardLinear", userbuffersSamples()}, {"UserbuffersBackwardLinear", userbuffersSamples()}};
}

const FusionTarget kBlackwell{.capability = ComputeCapability{10, 0}};

Link grouped(std::int64_t outFeatures, std::string id) {
  return with(link("GroupedLinear", std::move(id), "fc1_split_sizes"), "out_features", outFeatures);
}

/// 128 rows of 64 in 3 groups.
std::vector<Link> groupedMlp(Link activation, std::int64_t hidden = 128) {
  Link fc1 = grouped(hidden, "fc1");
  fc1.extraFrom.clear();
  return {fc1, std::move(activation), grouped(64, "fc2")};
}

Link interleaved(const std::string& activation) {
  return with(link(activation, "act"), "glu_interleave_size", std::int64_t{32});
}

Samples groupedMlpSamples() {
  const auto sample = [](std::string label, std::vector<Link> links, std::string recipe = "MXFP8BlockScaling") {
    return RuleSample{std::move(label), std::move(links), {.recipe = std::move(recipe)}, {128, 64}, kBlackwell};
  };
  std::vector<Link> scaledBias = groupedMlp(interleaved("ScaledSwiGLU"));
  scaledBias[2] = with(scaledBias[2], "scale_bias", true);
  std::vector<Link> single = groupedMlp(interleaved("ScaledSwiGLU"));
  for (const std::size_t i : {0U, 2U}) single[i] = with(with(single[i], "single_grouped_weight", true), "bias", false);
  return {{"GroupedMLP_CuTeGEMMGLU",
           {sample("SwiGLU", groupedMlp(interleaved("ScaledSwiGLU"))),
            sample("SwiGLU in FP4", groupedMlp(interleaved("ScaledSwiGLU")), "NVFP4BlockScaling"),
            sample("clamped", groupedMlp(interleaved("ScaledClampedQGeGLU"))),
            sample("SiTU", groupedMlp(interleaved("ScaledSiTUGLU"))), sample("one weight for all groups", single),
            sample("scaled bias", scaledBias)}},
          {"GroupedMLP_CuTeGEMMUnary",
           {sample("SReLU", groupedMlp(link("ScaledSReLU", "act"), 64)),
            sample("tanh SReLU", groupedMlp(link("ScaledTanhSReLU", "act"), 64))}}};
}

Samples makeSamples() {
  Samples all;
  for (Samples part :
       {forwardLinearSamples(), backwardLinearSamples(), normSamples(), embeddingSamples(), routingSamples(),
        chainSamples(), jointSamples(), attentionSamples(), splitRotarySamplesOfBothPasses(), normRotarySamples(),
        userbuffersSamplesOfBothPasses(), groupedMlpSamples(), fusedOperandSamples()})
    all.merge(part);
  return all;
}

std::vector<RefusalSample> userbuffersRefusals() {
  const ChainOptions overridden{.recipe = "Float8CurrentScaling",
                                .recipeFields = fields({{"backward_override", std::string("dequantized")}})};
  const Link unsplit = with(userbuffers(linear(16)), "sequence_parallel", true);
  return {{0, DType::BF16, {parallel("row")}, {}, {6, 16}, {.capability = ComputeCapability{9, 0}}},
          {1, DType::BF16, {parallel("column")}, overridden, {16, 16}, kTwoRanks},
          {2, DType::BF16, {unsplit}, {}, {6, 16}, kTwoRanks},
          {3, DType::BF16, {mode(userbuffers(linear(16)), "row")}, {}, {6, 16}, kTwoRanks},
          {4, DType::BF16, {parallel("row")}, {.recipe = "NVFP4BlockScaling"}, {16, 16}, kTwoRanks}};
}

/// Refusals of the conditions that both fusions of a grouped MLP have.
std::vector<RefusalSample> groupedMlpRefusals(const std::vector<Link>& links) {
  const auto refusal = [](std::size_t condition, std::vector<Link> given, ChainOptions options, Shape shape) {
    return RefusalSample{condition, DType::BF16, std::move(given), std::move(options), std::move(shape), kBlackwell};
  };
  const ChainOptions mxfp8{.recipe = "MXFP8BlockScaling"};
  std::vector<Link> otherSplit = links;
  otherSplit[2].extraFrom.clear();
  std::vector<Link> otherGroups = otherSplit;
  otherGroups[2] = with(otherGroups[2], "num_groups", std::int64_t{2});
  std::vector<Link> narrow = links;
  narrow[2] = with(narrow[2], "out_features", std::int64_t{96});
  return {
      refusal(0, links, {}, {128, 64}),
      refusal(0, links, {.recipe = "Float8BlockScaling"}, {128, 64}),
      refusal(1, links,
              {.recipe = "MXFP8BlockScaling", .recipeFields = fields({{"fp8_format", std::string("HYBRID")}})},
              {128, 64}),
      refusal(2, links, {.recipe = "NVFP4BlockScaling", .recipeFields = fields({{"disable_rht", true}})}, {128, 64}),
      refusal(3, links,
              {.recipe = "MXFP8BlockScaling",
               .recipeFields = fields({{"backward_override", std::string("high_precision")}})},
              {128, 64}),
      refusal(4, narrow, mxfp8, {128, 64}),
      refusal(5, otherGroups, mxfp8, {128, 64}),
      refusal(6, otherSplit, mxfp8, {128, 64}),
      refusal(7, links, mxfp8, {96, 64})};
}

std::vector<RefusalSample> groupedGluRefusals() {
  std::vector<RefusalSample> refusals = groupedMlpRefusals(groupedMlp(interleaved("ScaledSwiGLU")));
  const ChainOptions mxfp8{.recipe = "MXFP8BlockScaling"};
  const FusionTarget rubin{.capability = ComputeCapability{10, 7}};
  refusals.push_back({8, DType::BF16, groupedMlp(link("ScaledSiTUGLU", "act")), mxfp8, {128, 64}, kBlackwell});
  refusals.push_back({9, DType::BF16, groupedMlp(interleaved("ScaledSiTUGLU")), mxfp8, {128, 64}, rubin});
  return refusals;
}

std::map<std::string, std::vector<RefusalSample>> makeRefusals() {
  const Link add = link("AddExtraInput", "add");
  const Link bias = link("Bias", "bias");
  const Link f32Norm = with(link("RMSNorm"), "dtype", std::string("f32"));
  const Link f32LayerNorm = with(link("LayerNorm"), "dtype", std::string("f32"));
  const ChainOptions current{.recipe = "Float8CurrentScaling"};
  const ChainOptions nvfp4{.recipe = "NVFP4BlockScaling"};
  const ChainOptions mxfp8{.recipe = "MXFP8BlockScaling"};
  const Link experts = with(link("GroupedLinear"), "out_features", std::int64_t{64});
  return {
      {"ForwardQuantize",
       {{0, DType::BF16, {link("GELU"), linear(32)}, current, {64, 32}},
        {0, DType::BF16, {link("RMSNorm"), linear(32)}, nvfp4, {64, 32}},
        {1, DType::BF16, {link("GELU"), experts}, mxfp8, {96, 64}},
        {2, DType::BF16, {linear(32), linear(32)}, mxfp8, {64, 32}}}},
      {"ForwardPermuteQuantize",
       {{0, DType::BF16, expertLinks(32), current, {16, 32}},
        {1, DType::BF16, expertLinks(32, linear(32, "shared")), mxfp8, {16, 32}},
        {1, DType::BF16, expertLinks(32, with(experts, "num_groups", std::int64_t{4})), mxfp8, {16, 64}}}},
      {"ForwardAttentionQuantize",
       {{0, DType::BF16, fp8AttentionLinks(), fp8Attention("Float8CurrentScaling"), {16, 16}}}},
      {"ForwardAttentionAmax", {{0, DType::BF16, fp8AttentionLinks(), fp8Attention("DelayedScaling"), {16, 16}}}},
      {"BackwardQuantize",
       {{0, DType::BF16, {linear(32), link("GELU")}, current, {64, 32}},
        {0, DType::BF16, {linear(32), link("RMSNorm")}, nvfp4, {64, 32}},
        {1, DType::BF16, {experts, link("GELU")}, mxfp8, {96, 64}},
        {2, DType::BF16, {linear(32), linear(32)}, mxfp8, {64, 32}}}},
      {"ForwardAmax",
       {{0, DType::BF16, {link("GELU"), linear(32)}, nvfp4, {64, 32}},
        {1, DType::BF16, {link("GELU"), experts}, current, {96, 64}}}},
      {"BackwardAmax",
       {{0, DType::BF16, {linear(32), link("RMSNorm")}, nvfp4, {64, 32}},
        {1, DType::BF16, {experts, link("GELU")}, current, {96, 64}}}},
      {"ForwardLinearBiasAdd",
       {{0, DType::BF16, {mode(linear(16), "row"), inPlace(add)}, {}},
        {1, DType::BF16, {linear(16), add}, {}},
        {2,
         DType::BF16,
         {save(), with(linear(16), "dtype", std::string("f32")), inPlace(link("AddExtraInput", "add", "save.extra"))},
         {}}}},
      {"ForwardLinearBiasActivation",
       {{0, DType::BF16, {mode(linear(16), "row"), bias}, {}}, {1, DType::F32, {linear(16), bias}, {}}}},
      {"ForwardLinearScaleAdd",
       {{0, DType::BF16, {mode(linear(16), "row"), link("ConstantScale"), inPlace(add)}, {}},
        {1, DType::BF16, {linear(16), link("ConstantScale"), add}, {}},
        {2,
         DType::BF16,
         {save(), with(linear(16), "dtype", std::string("f32")), link("ConstantScale"),
          inPlace(link("AddExtraInput", "add", "save.extra"))},
         {}}}},
      {"BackwardActivationBias",
       {{0, DType::BF16, {linear(16), bias, link("GELU")}, {}},
        {0, DType::BF16, {bias, link("ReLU")}, {}},
        {1,
         DType::BF16,
         {linear(32), bias, with(link("GELU"), "approximate", std::string("none"))},
         current,
         {16, 16}}}},
      {"BackwardLinearScale", {{0, DType::BF16, {mode(linear(16), "column"), link("ConstantScale")}, {}}}},
      {"BackwardActivationLinear",
       {{0, DType::BF16, {link("ReLU"), mode(linear(16), "column"), bias}, {}},
        {1, DType::BF16, {link("GELU"), with(mode(linear(16), "row"), "sequence_parallel", true), bias}, {}},
        {2, DType::BF16, {with(link("GELU", "act"), "cache_quantized_input", true), linear(16)}, {}},
        {3, DType::BF16, {linear(16), link("GELU"), linear(16, "out")}, current, {16, 16}},
        {3, DType::BF16, {linear(32), bias, link("ReLU"), linear(32, "out")}, mxfp8, {32, 32}}}},
      {"BackwardLinearBias",
       {{0, DType::BF16, {mode(linear(16), "row"), bias}, {}},
        {1, DType::BF16, {mode(linear(16), "column"), bias}, {}},
        {2, DType::BF16, {mode(linear(16), "column"), bias}, {}, {6, 16}, {}, 2}}},
      {"ForwardLinearEpilogue",
       {{0, DType::BF16, {mode(linear(16), "row"), bias, link("GELU")}, {}},
        {1, DType::BF16, {linear(16), bias, inPlace(add)}, {}},
        {2, DType::BF16, {linear(16), link("ConstantScale"), inPlace(add)}, {}}}},
      {"ForwardUnpermuteAdd",
       {{0,
         DType::BF16,
         routed({reading("x", with(linear(16, "shared"), "dtype", std::string("f32"))),
                 reading("unpermute.y", link("AddExtraInput", "add", "shared.y"))}),
         {}}}},
      {"ForwardAddNorm", {{0, DType::BF16, {add, f32Norm}, {}}}},
      {"ForwardEmbeddingNorm",
       {{0, DType::BF16, lookedUp({with(link("RMSNorm"), "normalized_shape", Shape{2, 24})}), {}},
        {1, DType::BF16, lookedUp({with(link("RMSNorm"), "dtype", std::string("bf16"))}), {}}}},
      {"BackwardLinearAdd",
       {{0,
         DType::BF16,
         {save(), linear(16, "fc"), reading("save.extra", link("GELU", "side")), link("AddExtraInput", "sum", "fc.y")},
         {}},
        {1, DType::BF16, {inPlace(save()), mode(linear(16), "column")}, kReadBranch}}},
      {"BackwardAddRMSNorm", {{0, DType::BF16, {inPlace(save()), link("RMSNorm")}, kReadBranch}}},
      {"BackwardAddLayerNorm", {{0, DType::BF16, {save(), f32LayerNorm}, kReadBranch}}},
      {"UserbuffersForwardLinear", userbuffersRefusals()},
      {"UserbuffersBackwardLinear", userbuffersRefusals()},
      {"GroupedMLP_CuTeGEMMGLU", groupedGluRefusals()},
      {"GroupedMLP_CuTeGEMMUnary", groupedMlpRefusals(groupedMlp(link("ScaledSReLU", "act"), 64))},
      {"ForwardBackwardSwiGLULinear",
       {{0, DType::BF16, {link("SwiGLU"), mode(linear(24), "row")}, {}},
        {1, DType::BF16, {link("SwiGLU"), mode(linear(24), "column")}, {}},
        {2, DType::BF16, {with(link("SwiGLU"), "cache_quantized_input", true), linear(24)}, {}},
        {3, DType::F32, {link("SwiGLU"), with(linear(24), "dtype", std::string("bf16"))}, {}}}},
      {"ForwardBackwardSplitAttention", splitAttentionRefusals()},
      {"ForwardRMSNormRotary", normRotaryRefusals()},
      {"BackwardRMSNormRotary", normRotaryRefusals()},
      {"ForwardSplitRotary", splitRotaryRefusals(false)},
      {"BackwardSplitRotary", splitRotaryRefusals(false)},
      {"ForwardBiasSplitRotary", splitRotaryRefusals(true)},
      {"BackwardBiasSplitRotary", splitRotaryRefusals(true)},
      {"ForwardBackwardLinearCrossEntropy",
       {{0, DType::BF16, {mode(linear(16), "column"), link("CrossEntropy")}, {}},
        {1, DType::F32, {with(linear(16), "dtype", std::string("bf16")), link("CrossEntropy")}, {}},
        {2, DType::BF16, {linear(16), link("CrossEntropy")}, current, {16, 16}}}},
      {"BackwardBiasSwiGLU",
       {{0, DType::BF16, {linear(16), bias, with(link("SwiGLU"), "cache_quantized_input", true)}, {}}}},
  };
}

template <class Map>
typename Map::mapped_type lookUp(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type{} : found->second;
}

}  // namespace

std::vector<RuleSample> ruleSamples(const std::string& rule) {
  static const auto samples = makeSamples();
  return lookUp(samples, rule);
}

RuleSwitches everythingAsked(const RuleCatalog& catalog) {
  RuleSwitches switches;
  for (const FusionRule* rule : catalog.all())
    if (!rule->price.empty()) switches.with.push_back(rule->name);
  return switches;
}

std::vector<RefusalSample> refusalSamples(const std::string& rule) {
  static const auto samples = makeRefusals();
  return lookUp(samples, rule);
}

std::vector<Link> fp8AttentionLinks(bool hasBias, bool hasRotary) {
  constexpr std::int64_t kChannels = 16;
  constexpr std::int64_t kWidth = 2 * kChannels;
  const auto rotary = [&](const char* id, const char* from) { return with(rotaryOf(id, from), "dim", kChannels); };
  std::vector<Link> links = packedHeads(2, 2);
  links[0] = linear(3 * kWidth, "qkv");
  links[1] = with(links[1], "shape", std::vector<std::int64_t>{-1, 1, 3 * kWidth});
  links[2] = with(links[2], "sizes", std::vector<std::int64_t>{kWidth, kWidth, kWidth});
  if (hasBias) links.insert(links.begin() + 2, link("Bias", "bias"));
  if (hasRotary) links.insert(links.end(), {rotary("rope_q", "split.y"), rotary("rope_k", "split.y1")});
  links.push_back(with(attentionOf(2, 2, hasRotary ? kRotatedParts : kSplitParts), "kv_channels",
                       std::vector<std::int64_t>{kChannels}));
  return links;
}

std::vector<Link> fp8AttentionOfLinears(const LinearHeads& heads) {
  constexpr std::int64_t kChannels = 16;
  using Shape = std::vector<std::int64_t>;
  const Shape shape = heads.hasHeads ? Shape{-1, 1, 2, kChannels} : Shape{-1, 1, 2 * kChannels};
  std::vector<Link> links = {link("RMSNorm", "norm")};
  std::array<std::string, 3> parts;
  for (const std::string name : {"q", "k", "v"}) {
    links.push_back(reading("norm.y", linear(2 * kChannels, name)));
    if (heads.hasBias) links.push_back(link("Bias", name + "_bias"));
    links.push_back(with(link("Reshape", name + "_heads"), "shape", shape));
    std::string& part = parts.at(static_cast<std::size_t>(name == "k") + 2 * static_cast<std::size_t>(name == "v"));
    part = name + "_heads.y";
    if (!heads.hasRotary || name == "v") continue;
    if (heads.hasNorms) links.push_back(with(link("RMSNorm", name + "_norm"), "normalized_shape", Shape{kChannels}));
    if (heads.hasNorms) part = name + "_norm.y";
    links.push_back(with(rotaryOf("rope_" + name, part), "dim", kChannels));
    part = "rope_" + name + ".y";
  }
  links.push_back(with(attentionOf(2, 2, parts), "kv_channels", Shape{kChannels}));
  return links;
}

ChainOptions fp8Attention(std::string recipe) {
  return {.recipe = std::move(recipe), .recipeFields = fields({{"fp8_dpa", true}})};
}

std::string differenceFromReference(const Graph& graph, const RunResults& actual, const RunResults& expected,
                                    double relative) {
  constexpr double kShareInNorm = 0.1;
  return std::ranges::any_of(graph.nodes(), isQuantizedAttention)
             ? firstDifferenceInNorm(actual, expected, kShareInNorm)
             : firstDifference(actual, expected, relative);
}

}  // namespace fuseline::testing
