// GroupedLinear by its formulas, in float64 and without the program's own reference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <cstdint>
#include <vector>

namespace fuseline::testing {

/// One call. x: [M, K], scales: [M], gradY: [M, N]; for each group a weight [N, K] and a bias [N]. Without biases there
/// is no bias; without scales it is not scaled.
struct GroupedValues {
  std::vector<std::int64_t> sizes;
  std::int64_t K = 1;
  std::int64_t N = 1;
  std::vector<double> x, scales, gradY;
  std::vector<std::vector<double>> weights, biases;

  /// M, the sum of the sizes.
  std::int64_t rows() const;
};

struct GroupedResults {
  std::vector<double> y, gradX, gradScales;
  std::vector<std::vector<double>> gradWeights, gradBiases;
};

/// y = x W_g^T + scales b_g, and its gradients. gradY may be empty: then the gradients mean nothing.
GroupedResults groupedResults(const GroupedValues& values);

/// Parts one after the other, as a parameter of all groups has them.
std::vector<double> joined(const std::vector<std::vector<double>>& parts);

}  // namespace fuseline::testing
