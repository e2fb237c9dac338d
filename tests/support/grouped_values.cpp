// Plain loops over groups, rows and columns.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/grouped_values.h"

#include <numeric>

namespace fuseline::testing {

namespace {

std::size_t index(std::int64_t row, std::int64_t col, std::int64_t width) {
  return static_cast<std::size_t>(row * width + col);
}

/// Adds the contribution of one element of y and its gradient.
void addElement(const GroupedValues& values, std::size_t group, std::int64_t row, std::int64_t n,
                GroupedResults& results) {
  double& y = results.y[index(row, n, values.N)];
  const double gradY = values.gradY.empty() ? 0.0 : values.gradY[index(row, n, values.N)];
  for (std::int64_t k = 0; k < values.K; ++k) {
    const double x = values.x[index(row, k, values.K)];
    const double weight = values.weights[group][index(n, k, values.K)];
    y += x * weight;
    results.gradX[index(row, k, values.K)] += gradY * weight;
    results.gradWeights[group][index(n, k, values.K)] += gradY * x;
  }
  if (values.biases.empty()) return;
  const double bias = values.biases[group][index(0, n, values.N)];
  const double scale = values.scales.empty() ? 1.0 : values.scales[index(row, 0, 1)];
  y += scale * bias;
  results.gradBiases[group][index(0, n, values.N)] += gradY * scale;
  results.gradScales[index(row, 0, 1)] += gradY * bias;
}

}  // namespace

std::int64_t GroupedValues::rows() const { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}); }

GroupedResults groupedResults(const GroupedValues& values) {
  const auto rows = static_cast<std::size_t>(values.rows());
  const auto N = static_cast<std::size_t>(values.N);
  const auto K = static_cast<std::size_t>(values.K);
  GroupedResults results{.y = std::vector<double>(rows * N),
                         .gradX = std::vector<double>(rows * K),
                         .gradScales = std::vector<double>(rows),
                         .gradWeights = {values.sizes.size(), std::vector<double>(N * K)},
                         .gradBiases = {values.biases.size(), std::vector<double>(N)}};
  std::int64_t row = 0;
  for (std::size_t group = 0; group < values.sizes.size(); ++group)
    for (const std::int64_t end = row + values.sizes[group]; row < end; ++row)
      for (std::int64_t n = 0; n < values.N; ++n) addElement(values, group, row, n, results);
  return results;
}

std::vector<double> joined(const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const std::vector<double>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace fuseline::testing
