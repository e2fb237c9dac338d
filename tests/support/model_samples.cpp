// Calls of Embedding, TiedLinear, CrossEntropy and the ops of a mixture of experts.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/model_samples.h"

#include "tests/support/structured_samples.h"

#include <string>
#include <utility>

namespace fuseline::testing {

namespace {

/// More tokens than rows, so that rows are looked up more than once.
std::vector<OpSample> embeddingSamples() {
  const auto sample = [](const Shape& ids, std::int64_t rows, std::int64_t width, AttributeValues more = {}) {
    more.insert(more.begin(), {{"num_embeddings", rows}, {"embedding_dim", width}});
    return sampleOf("Embedding", more, {{DType::I64, ids}});
  };
  return {sample({0}, 3, 4),
          sample({}, 3, 4),
          sample({1}, 1, 1),
          sample({2, 9}, 5, 7),
          sample({40}, 3, 70),
          sample({2, 9}, 5, 7, {{"shares_weight", true}}),
          sample({3, 5}, 6, 8, {{"positions", true}}),
          sample({3, 5}, 5, 8, {{"positions", true}, {"shares_weight", true}})};
}

std::vector<OpSample> tiedLinearSamples() {
  const auto sample = [](const Shape& x, std::int64_t rows) {
    return sampleOf("TiedLinear", {}, {{DType::F32, x}, {DType::F32, {rows, x.back()}}});
  };
  return {sample({0, 4}, 3), sample({4}, 3), sample({1, 1}, 1), sample({5, 7}, 9), sample({2, 3, 16}, 5)};
}

std::vector<OpSample> crossEntropySamples() {
  const auto sample = [](const Shape& x, const AttributeValues& more = {}) {
    return sampleOf("CrossEntropy", more, {{DType::F32, x}, {DType::I64, {x.begin(), x.end() - 1}}});
  };
  const auto reduced = [](const char* how) {
    return std::pair<std::string, AttributeValue>("reduction", std::string(how));
  };
  const std::pair<std::string, AttributeValue> ignored("ignore_index", std::int64_t{1});
  return {sample({0, 4}),
          sample({6}),
          sample({1, 1}),
          sample({5, 7}),
          sample({2, 3, 70}),
          sample({5, 7}, {reduced("sum")}),
          sample({2, 3, 9}, {reduced("none")}),
          sample({8, 3}, {ignored}),
          sample({8, 3}, {ignored, reduced("none")}),
          sample({3, 2}, {ignored, reduced("sum"), {"label_smoothing", 0.2}}),
          sample({5, 7}, {{"label_smoothing", 0.1}}),
          sample({5, 7}, {{"lse_square_scale", 0.05}}),
          sample({2, 3, 33}, {{"label_smoothing", 0.1}, {"lse_square_scale", 0.01}})};
}

std::vector<OpSample> routerSamples() {
  const auto sample = [](const Shape& x, std::int64_t topk, AttributeValues more = {}) {
    more.emplace_back("topk", topk);
    return sampleOf("TopKRouter", more, {{DType::F32, x}});
  };
  const std::pair<std::string, AttributeValue> pre("use_pre_softmax", true), normalized("norm_topk_prob", true),
      sigmoid("score_function", std::string("sigmoid")), biased("expert_bias", true),
      grouped("num_groups", std::int64_t{4}), of("group_topk", std::int64_t{2}), scaled("scaling_factor", 2.5);
  return {sample({0, 4}, 2),
          sample({3}, 1),
          sample({1, 1}, 1, {pre}),
          sample({5, 7}, 3),
          sample({2, 3, 9}, 4, {pre}),
          sample({5, 7}, 3, {pre, normalized}),
          sample({5, 8}, 4, {pre, grouped, of}),
          sample({5, 7}, 1, {sigmoid}),
          sample({5, 7}, 3, {sigmoid, scaled, {"norm_topk_prob", false}}),
          sample({5, 7}, 3, {{"score_function", std::string("sqrtsoftplus")}, scaled}),
          sample({6, 16}, 4, {sigmoid, scaled, biased, grouped, of})};
}

std::vector<OpSample> permuteSamples() {
  const auto sample = [](const Shape& x, std::int64_t topk, std::int64_t experts, std::int64_t align = 1) {
    Shape indices = x;
    indices.back() = topk;
    return sampleOf("MoEPermute", {{"num_experts", experts}, {"align_size", align}},
                    {{DType::F32, x}, {DType::I64, indices}});
  };
  return {sample({0, 4}, 2, 3),    sample({4}, 1, 1),         sample({5, 7}, 2, 3),
          sample({2, 3, 9}, 4, 8), sample({5, 70}, 3, 5, 16), sample({6, 5}, 2, 3)};
}

std::vector<OpSample> unpermuteSamples() {
  const auto sample = [](std::int64_t rows, std::int64_t width, const Shape& map, bool merges = true) {
    std::vector<TensorSpec> inputs = {{DType::F32, {rows, width}}, {DType::I64, map}};
    if (merges) inputs.push_back({DType::F32, map});
    return sampleOf("MoEUnpermute", {{"merging_probs", merges}}, std::move(inputs));
  };
  return {sample(0, 4, {0, 2}),         sample(1, 1, {1}),    sample(10, 7, {5, 2}), sample(9, 70, {2, 3, 2}),
          sample(16, 9, {5, 2}, false), sample(20, 6, {8, 2})};
}

/// layers: the shapes of their logits.
std::vector<OpSample> auxLossSamples() {
  const auto sample = [](const std::vector<Shape>& layers, AttributeValues more = {}) {
    more.emplace_back("topk", std::int64_t{2});
    more.emplace_back("num_layers", static_cast<std::int64_t>(layers.size()));
    std::vector<TensorSpec> inputs;
    for (const Shape& x : layers) inputs.push_back({DType::F32, x});
    for (const Shape& x : layers) inputs.push_back({DType::I64, {x.back()}});
    return sampleOf("MoEAuxLoss", more, std::move(inputs));
  };
  const std::pair<std::string, AttributeValue> squares("z_loss_coeff", 0.1);
  const auto score = [](const char* name) { return std::pair<std::string, AttributeValue>("score_function", name); };
  return {sample({{0, 4}}), sample({{5, 7}}, {squares}), sample({{2, 3, 9}, {70, 9}}, {squares}),
          sample({{5, 8}}, {score("sigmoid"), squares}), sample({{3}, {4, 3}, {5, 3}}, {score("sqrtsoftplus")})};
}

}  // namespace

std::vector<OpSample> modelSamples(std::string_view operation) {
  if (operation == "Embedding") return embeddingSamples();
  if (operation == "TiedLinear") return tiedLinearSamples();
  if (operation == "CrossEntropy") return crossEntropySamples();
  if (operation == "TopKRouter") return routerSamples();
  if (operation == "MoEPermute") return permuteSamples();
  if (operation == "MoEAuxLoss") return auxLossSamples();
  if (operation == "MoEUnpermute") return unpermuteSamples();
  return {};
}

}  // namespace fuseline::testing
