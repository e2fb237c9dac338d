// Top-k routing after TransformerEngine's fused router, and a counting sort of slots by expert.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/moe_form.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Orders indices by falling value, then by index.
auto byFalling(const std::vector<double>& values) {
  return [&values](std::int64_t a, std::int64_t b) {
    return comesBefore(values[static_cast<std::size_t>(a)], a, values[static_cast<std::size_t>(b)], b);
  };
}

/// In place.
void softmax(std::span<double> values) {
  const double most = *std::ranges::min_element(values, [](double a, double b) { return comesBefore(a, 0, b, 0); });
  double sum = 0.0;
  for (double& value : values) sum += value = std::exp(value - most);
  for (double& value : values) value /= sum;
}

std::int64_t roundedUpTo(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }

}  // namespace

RouterForm routerForm(const Attributes& attributes) {
  const std::string& name = attributes.text("score_function");
  RouterForm form{.topk = attributes.integer("topk"),
                  .score = name == "softmax"   ? RouterScore::Softmax
                           : name == "sigmoid" ? RouterScore::Sigmoid
                                               : RouterScore::SqrtSoftplus,
                  .usesPreSoftmax = attributes.boolean("use_pre_softmax"),
                  .scalingFactor = attributes.real("scaling_factor"),
                  .hasExpertBias = attributes.boolean("expert_bias")};
  // As TransformerEngine, where nothing is said.
  const bool isNormalized = form.score != RouterScore::Softmax && form.topk > 1;
  form.normalizes = attributes.has("norm_topk_prob") ? attributes.boolean("norm_topk_prob") : isNormalized;
  if (attributes.has("num_groups")) form.numGroups = attributes.integer("num_groups");
  if (attributes.has("group_topk")) form.groupTopk = attributes.integer("group_topk");
  return form;
}

TokenRouter::TokenRouter(const RouterForm& form, std::int64_t numExperts)
    : m_form(form),
      m_numExperts(numExperts),
      m_scores(static_cast<std::size_t>(numExperts)),
      m_choice(static_cast<std::size_t>(numExperts)) {}

void TokenRouter::score(std::span<const double> logits) {
  std::ranges::copy(logits, m_scores.begin());
  if (m_form.score == RouterScore::Softmax) return softmax(m_scores);
  std::ranges::transform(m_scores, m_scores.begin(), [&](double x) { return scoreOfLogit(m_form.score, x); });
}

/// The sum of the group's best choices.
double TokenRouter::groupScore(std::int64_t group) {
  const std::int64_t size = m_numExperts / m_form.numGroups;
  std::vector<std::int64_t> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), group * size);
  const auto best = members.begin() + m_form.topk / m_form.groupTopk;
  std::partial_sort(members.begin(), best, members.end(), byFalling(m_choice));
  return std::accumulate(members.begin(), best, 0.0, [&](double sum, std::int64_t expert) {
    return sum + m_choice[static_cast<std::size_t>(expert)];
  });
}

/// The experts of the best groups; without groups all.
std::vector<std::int64_t> TokenRouter::candidates() {
  std::vector<std::int64_t> all(static_cast<std::size_t>(m_numExperts));
  std::iota(all.begin(), all.end(), 0);
  if (m_form.numGroups == 0) return all;
  std::vector<double> scores;
  for (std::int64_t group = 0; group < m_form.numGroups; ++group) scores.push_back(groupScore(group));
  std::vector<std::int64_t> groups(scores.size());
  std::iota(groups.begin(), groups.end(), 0);
  std::ranges::sort(groups, byFalling(scores));
  groups.resize(static_cast<std::size_t>(m_form.groupTopk));
  const std::int64_t size = m_numExperts / m_form.numGroups;
  std::erase_if(all, [&](std::int64_t expert) { return std::ranges::find(groups, expert / size) == groups.end(); });
  return all;
}

void TokenRouter::choose(std::span<const double> logits, std::span<const double> bias,
                         std::span<std::int64_t> experts) {
  if (m_form.choosesByScore())
    m_choice = m_scores;
  else
    m_choice.assign(logits.begin(), logits.end());
  for (std::size_t expert = 0; expert < bias.size(); ++expert) m_choice[expert] += bias[expert];
  std::vector<std::int64_t> order = candidates();
  std::partial_sort(order.begin(), order.begin() + m_form.topk, order.end(), byFalling(m_choice));
  std::copy_n(order.begin(), m_form.topk, experts.begin());
}

double TokenRouter::normalizer(std::span<const std::int64_t> experts) const {
  if (!m_form.normalizes) return 1.0;
  double sum = kRouterEpsilon;
  for (const std::int64_t expert : experts) sum += m_scores[static_cast<std::size_t>(expert)];
  return sum;
}

void TokenRouter::route(std::span<const double> logits, std::span<const double> bias, std::span<std::int64_t> experts,
                        std::span<double> probs) {
  score(logits);
  choose(logits, bias, experts);
  const auto valuesOf = [&](std::span<const double> from) {
    std::ranges::transform(experts, probs.begin(), [&](std::int64_t e) { return from[static_cast<std::size_t>(e)]; });
  };
  if (m_form.isSoftmaxOfChosen()) {
    valuesOf(logits);
    softmax(probs);
  } else {
    valuesOf(m_scores);
  }
  const double factor = m_form.scalingFactor / (m_form.isSoftmaxOfChosen() ? 1.0 : normalizer(experts));
  for (double& prob : probs) prob *= factor;
}

void TokenRouter::gradient(std::span<const double> logits, std::span<const std::int64_t> experts,
                           std::span<const double> gradProbs, std::span<double> gradLogits) {
  score(logits);
  std::ranges::fill(gradLogits, 0.0);
  std::vector<double> values(experts.size());  // the probabilities before they are normalized and scaled
  const auto gather = [&](std::span<const double> from) {
    std::ranges::transform(experts, values.begin(), [&](std::int64_t e) { return from[static_cast<std::size_t>(e)]; });
  };
  gather(m_form.isSoftmaxOfChosen() ? logits : std::span<const double>(m_scores));
  if (m_form.isSoftmaxOfChosen()) softmax(values);
  double dot = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) dot += values[i] * m_form.scalingFactor * gradProbs[i];
  const auto at = [&](std::size_t i) -> double& { return gradLogits[static_cast<std::size_t>(experts[i])]; };
  if (m_form.isSoftmaxOfChosen()) {
    for (std::size_t i = 0; i < values.size(); ++i) at(i) = values[i] * (m_form.scalingFactor * gradProbs[i] - dot);
  } else if (m_form.score == RouterScore::Softmax) {
    for (std::size_t e = 0; e < m_scores.size(); ++e) gradLogits[e] = -m_scores[e] * dot;
    for (std::size_t i = 0; i < values.size(); ++i) at(i) += values[i] * m_form.scalingFactor * gradProbs[i];
  } else {
    const double sum = normalizer(experts);
    const double shared = m_form.normalizes ? dot / (sum * sum) : 0.0;
    for (std::size_t i = 0; i < values.size(); ++i)
      at(i) = (m_form.scalingFactor * gradProbs[i] / sum - shared) *
              slopeOfScore(m_form.score, logits[static_cast<std::size_t>(experts[i])], values[i]);
  }
}

std::int64_t PermuteForm::numRows(std::int64_t numSlots) const {
  return (numSlots + std::min(numExperts, numSlots) * (alignSize - 1)) / alignSize * alignSize;
}

PermuteForm permuteForm(const Attributes& attributes) {
  return {.numExperts = attributes.integer("num_experts"), .alignSize = attributes.integer("align_size")};
}

Result<Permutation> permutationOf(const PermuteForm& form, std::span<const std::int64_t> indices) {
  Permutation result{.rowIdMap = std::vector<std::int64_t>(indices.size(), -1),
                     .splitSizes = std::vector<std::int64_t>(static_cast<std::size_t>(form.numExperts))};
  for (std::size_t slot = 0; slot < indices.size(); ++slot) {
    if (indices[slot] < -1 || indices[slot] >= form.numExperts)
      return Error{fmt::format("MoEPermute: indices[{}] is {}, but there are {} experts, 0 to {}; -1 drops a slot.",
                               slot, indices[slot], form.numExperts, form.numExperts - 1)};
    if (indices[slot] >= 0) ++result.splitSizes[static_cast<std::size_t>(indices[slot])];
  }
  std::vector<std::int64_t> next;
  std::int64_t end = 0;
  for (std::int64_t& size : result.splitSizes) {
    next.push_back(end);
    size = roundedUpTo(size, form.alignSize);
    end += size;
  }
  result.splitSizes.back() += form.numRows(static_cast<std::int64_t>(indices.size())) - end;
  for (std::size_t slot = 0; slot < indices.size(); ++slot)
    if (indices[slot] >= 0) result.rowIdMap[slot] = next[static_cast<std::size_t>(indices[slot])]++;
  return result;
}

Result<std::vector<std::int64_t>> slotsOfRows(std::span<const std::int64_t> rowIdMap, std::int64_t numRows) {
  std::vector<std::int64_t> slots(static_cast<std::size_t>(numRows), -1);
  for (std::size_t slot = 0; slot < rowIdMap.size(); ++slot) {
    const std::int64_t row = rowIdMap[slot];
    if (row == -1) continue;
    if (row < -1 || row >= numRows)
      return Error{fmt::format("MoEUnpermute: row_id_map[{}] is {}, but x has {} rows, 0 to {}; -1 means no row.", slot,
                               row, numRows, numRows - 1)};
    std::int64_t& owner = slots[static_cast<std::size_t>(row)];
    if (owner >= 0)
      return Error{fmt::format("MoEUnpermute: row_id_map[{}] and row_id_map[{}] are both {}; each row has one token.",
                               owner, slot, row)};
    owner = static_cast<std::int64_t>(slot);
  }
  return slots;
}

}  // namespace fuseline
