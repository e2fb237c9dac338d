// Heads are those of packedHeads(): 8 channels.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/attention_layers.h"

namespace fuseline::testing {

namespace {

constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kGroups = 2;

std::vector<Link> packed() {
  std::vector<Link> links = packedHeads(kHeads, kGroups);
  links.erase(links.begin() + 1);  // the Reshape
  return links;
}

/// A part of the split as heads of 8 channels, normalized.
void appendNorm(const std::string& name, const std::string& from, std::int64_t heads, std::vector<Link>& links) {
  const std::vector<std::int64_t> shape = {-1, 2, heads, 8};
  links.push_back(reading(from, with(link("Reshape", name + "_heads"), "shape", shape)));
  links.push_back(with(link("RMSNorm", "norm_" + name), "normalized_shape", std::vector<std::int64_t>{8}));
  links.push_back(rotaryOf("rope_" + name, "norm_" + name + ".y"));
}

Link splitIn(const std::vector<std::int64_t>& sizes) { return with(link("Split", "split"), "sizes", sizes); }

Link concatOf(const std::string& left, const std::string& right) {
  return reading(left, with(link("Concat", "concat", right), "num_inputs", std::int64_t{2}));
}

}  // namespace

AttentionLayer llamaAttention() {
  std::vector<Link> links = packed();
  links.push_back(rotaryOf("rope_q", "split.y"));
  links.push_back(rotaryOf("rope_k", "split.y1"));
  links.push_back(attentionOf(kHeads, kGroups, {"rope_q.y", "rope_k.y", "split.y2"}));
  return {"llama", links};
}

AttentionLayer qwen3Attention() {
  std::vector<Link> links = packed();
  appendNorm("q", "split.y", kHeads, links);
  appendNorm("k", "split.y1", kGroups, links);
  links.push_back(attentionOf(kHeads, kGroups, {"rope_q.y", "rope_k.y", "split.y2"}));
  return {"qwen3", links};
}

AttentionLayer gpt2Attention() {
  std::vector<Link> links = packed();
  links.insert(links.begin() + 1, link("Bias"));
  links.push_back(attentionOf(kHeads, kGroups, {"split.y", "split.y1", "split.y2"}));
  return {"gpt2", links};
}

AttentionLayer latentAttention() {
  const Link heads = with(link("Reshape"), "shape", std::vector<std::int64_t>{-1, 2, kHeads, 16});
  const auto named = [](Link link, const std::string& id) {
    link.id = id;
    return link;
  };
  const Link halves = splitIn({8, 8});
  Link attention = attentionOf(kHeads, kHeads, {"q.y", "k.y", "split_heads.y1"});
  attention = with(attention, "kv_channels", std::vector<std::int64_t>{16, 8});
  return {
      "latent",
      {link("RMSNorm", "norm"), linear(kHeads * 16, "q_b"), heads, named(halves, "split_q"),
       rotaryOf("rope_q", "split_q.y1"), named(concatOf("split_q.y", "rope_q.y"), "q"),
       reading("norm.y", linear(8 + 8, "kv_a")), named(splitIn({8, 8}), "split_kv"), rotaryOf("rope_k", "split_kv.y1"),
       with(link("Expand", "k_shared"), "count", kHeads), reading("split_kv.y", link("RMSNorm", "norm_kv")),
       linear(kHeads * 16, "kv_b"), named(heads, "kv_heads"), named(halves, "split_heads"),
       named(concatOf("split_heads.y", "k_shared.y"), "k"), attention, linear(16, "proj")}};
}

AttentionLayer linearsOfOneInput() {
  return {"linears of one input",
          {link("RMSNorm", "norm"), linear(24, "q"), reading("norm.y", linear(24, "k")), link("Bias", "k_bias"),
           reading("norm.y", linear(24, "v")), link("AddExtraInput", "add_k", "k_bias.y"),
           link("AddExtraInput", "add_q", "q.y")}};
}

AttentionLayer splitNorms() {
  return {"split norms",
          {linear(96, "packed"), splitIn({64, 32}), reading("split.y", link("RMSNorm", "left")), linear(24, "fc_left"),
           reading("split.y1", link("LayerNorm", "right")), linear(24, "fc_right"),
           link("AddExtraInput", "add", "fc_left.y")}};
}

AttentionLayer splitLinears() {
  return {"split linears",
          {linear(96, "packed"), splitIn({64, 32}), reading("split.y", linear(24, "left")),
           reading("split.y1", linear(24, "right")), link("Bias"), link("AddExtraInput", "add", "left.y")}};
}

AttentionLayer joinedLinears() {
  return {"joined linears",
          {linear(64, "first"), reading("first.y", linear(64, "left")), reading("first.y", linear(32, "right")),
           concatOf("left.y", "right.y"), linear(24, "last")}};
}

std::string launchedKernels(const Plan& plan, Phase phase) {
  std::string names;
  for (const Step& step : plan.steps)
    if (step.phase == phase && step.isWork()) names += (names.empty() ? "" : " ") + step.kernel;
  return names;
}

std::int64_t bytesOf(const Plan& plan, Phase phase, const std::string& kernel) {
  std::int64_t bytes = 0;
  for (const Step& step : plan.steps)
    if (step.phase == phase && step.isWork() && step.kernel == kernel) bytes += step.bytesRead + step.bytesWritten;
  return bytes;
}

}  // namespace fuseline::testing
