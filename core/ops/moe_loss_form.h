// The auxiliary losses of routing beside their op, for the reference and the kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/routing.h"
#include "core/ops/operation.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fuseline {

/// Attributes of MoEAuxLoss.
struct AuxLossForm {
  int layers = 1;
  std::int64_t topk = 1;
  RouterScore score = RouterScore::Softmax;
  double coeff = 0.0;
  double zLossCoeff = 0.0;

  int numSlots() const { return 2 * layers; }
  int logitsSlot(int layer) const { return layer; }
  int countsSlot(int layer) const { return layers + layer; }
  /// Multiplies the sum over experts of their tokens times the sum of their scores. tokens: of all layers.
  double loadFactor(std::int64_t experts, std::int64_t tokens) const;
  /// Multiplies the sum over tokens of the squared log-sum-exp.
  double zFactor(std::int64_t tokens) const { return tokens > 0 ? zLossCoeff / static_cast<double>(tokens) : 0.0; }
};

/// Form for attributes that infer accepts.
AuxLossForm auxLossForm(const Attributes& attributes);

/// The scores of one token after another over all experts, with the sum 1, in double precision.
class TokenScores {
 public:
  TokenScores(RouterScore score, std::int64_t experts);

  /// Reads a token's logits; what the other functions say is of this one.
  void read(std::span<const double> logits);
  std::span<const double> scores() const { return m_scores; }
  double logSumExp() const { return m_logSumExp; }
  /// gradScores: [E]. gradLse: of the log-sum-exp. gradLogits: [E], a result.
  void gradient(std::span<const double> gradScores, double gradLse, std::span<double> gradLogits) const;

 private:
  RouterScore m_score;
  std::vector<double> m_logits;
  std::vector<double> m_softmax;
  std::vector<double> m_values;  // of the score function
  std::vector<double> m_scores;
  double m_sum = 1.0;  // of the values
  double m_logSumExp = 0.0;
};

}  // namespace fuseline
