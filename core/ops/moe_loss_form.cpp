// Scores as TransformerEngine's fused_compute_score_for_moe_aux_loss, and their gradients.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/moe_loss_form.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace fuseline {

double AuxLossForm::loadFactor(std::int64_t experts, std::int64_t tokens) const {
  if (tokens == 0) return 0.0;
  const auto count = static_cast<double>(tokens);
  return coeff * static_cast<double>(experts) / (static_cast<double>(topk) * count * count);
}

AuxLossForm auxLossForm(const Attributes& attributes) {
  const std::string& name = attributes.text("score_function");
  return {.layers = static_cast<int>(attributes.integer("num_layers")),
          .topk = attributes.integer("topk"),
          .score = name == "softmax"   ? RouterScore::Softmax
                   : name == "sigmoid" ? RouterScore::Sigmoid
                                       : RouterScore::SqrtSoftplus,
          .coeff = attributes.real("coeff"),
          .zLossCoeff = attributes.real("z_loss_coeff")};
}

TokenScores::TokenScores(RouterScore score, std::int64_t experts)
    : m_score(score),
      m_logits(static_cast<std::size_t>(experts)),
      m_softmax(m_logits.size()),
      m_values(m_logits.size()),
      m_scores(m_logits.size()) {}

void TokenScores::read(std::span<const double> logits) {
  std::ranges::copy(logits, m_logits.begin());
  const double most = *std::ranges::max_element(m_logits);
  double sum = 0.0;
  for (std::size_t e = 0; e < m_logits.size(); ++e) sum += m_softmax[e] = std::exp(m_logits[e] - most);
  for (double& share : m_softmax) share /= sum;
  m_logSumExp = most + std::log(sum);
  if (m_score == RouterScore::Softmax) {
    m_scores = m_softmax;
    return;
  }
  std::ranges::transform(m_logits, m_values.begin(), [this](double x) { return scoreOfLogit(m_score, x); });
  m_sum = std::accumulate(m_values.begin(), m_values.end(), 0.0) + kRouterEpsilon;
  std::ranges::transform(m_values, m_scores.begin(), [this](double value) { return value / m_sum; });
}

void TokenScores::gradient(std::span<const double> gradScores, double gradLse, std::span<double> gradLogits) const {
  const double dot = std::inner_product(gradScores.begin(), gradScores.end(), m_scores.begin(), 0.0);
  for (std::size_t e = 0; e < m_logits.size(); ++e) {
    const double slope =
        m_score == RouterScore::Softmax ? m_scores[e] : slopeOfScore(m_score, m_logits[e], m_values[e]) / m_sum;
    gradLogits[e] = slope * (gradScores[e] - dot) + gradLse * m_softmax[e];
  }
}

}  // namespace fuseline
