// Calls of Embedding, TiedLinear and CrossEntropy.
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

}  // namespace

std::vector<OpSample> modelSamples(std::string_view operation) {
  if (operation == "Embedding") return embeddingSamples();
  if (operation == "TiedLinear") return tiedLinearSamples();
  if (operation == "CrossEntropy") return crossEntropySamples();
  return {};
}

}  // namespace fuseline::testing
