// Mixture of experts beside its ops: the routing of one token, and the place of every row, for references and kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/routing.h"
#include "core/ops/operation.h"
#include "core/support/result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fuseline {

/// Attributes of TopKRouter.
struct RouterForm {
  static constexpr int kIndices = 1;  // slots of its outputs
  static constexpr int kTokensPerExpert = 2;

  std::int64_t topk = 1;
  RouterScore score = RouterScore::Softmax;
  bool usesPreSoftmax = false;
  bool normalizes = false;
  std::int64_t numGroups = 0;  // 0: no groups
  std::int64_t groupTopk = 0;
  double scalingFactor = 1.0;
  bool hasExpertBias = false;

  /// The probabilities are the softmax of the chosen logits: then normalization comes for nothing.
  bool isSoftmaxOfChosen() const { return score == RouterScore::Softmax && (!usesPreSoftmax || normalizes); }
  /// Do scores decide, or the logits themselves? A softmax keeps the order of the logits, but makes small ones equal.
  bool choosesByScore() const { return score != RouterScore::Softmax || (usesPreSoftmax && numGroups > 0); }
};

/// Form for attributes that infer accepts.
RouterForm routerForm(const Attributes& attributes);

/// Routes one token after another, in double precision. The lower index comes first where scores are equal;
/// NaN counts as the largest score.
class TokenRouter {
 public:
  TokenRouter(const RouterForm& form, std::int64_t numExperts);

  /// bias: [E], or empty. experts, probs: [topk], by falling score.
  void route(std::span<const double> logits, std::span<const double> bias, std::span<std::int64_t> experts,
             std::span<double> probs);
  /// gradProbs: [topk]. gradLogits: [E], a result.
  void gradient(std::span<const double> logits, std::span<const std::int64_t> experts,
                std::span<const double> gradProbs, std::span<double> gradLogits);

 private:
  void score(std::span<const double> logits);
  void choose(std::span<const double> logits, std::span<const double> bias, std::span<std::int64_t> experts);
  double groupScore(std::int64_t group);
  std::vector<std::int64_t> candidates();
  double normalizer(std::span<const std::int64_t> experts) const;

  RouterForm m_form;
  std::int64_t m_numExperts;
  std::vector<double> m_scores;  // [E]
  std::vector<double> m_choice;  // [E], what decides: scores with the bias
};

/// Attributes of MoEPermute.
struct PermuteForm {
  static constexpr int kIndices = 1;   // slot of its input
  static constexpr int kRowIdMap = 1;  // slots of its outputs
  static constexpr int kSplitSizes = 2;

  std::int64_t numExperts = 1;
  std::int64_t alignSize = 1;

  /// Rows of the result for this number of slots, whichever experts are chosen: the smallest bound.
  std::int64_t numRows(std::int64_t numSlots) const;
};

PermuteForm permuteForm(const Attributes& attributes);

/// Rows ordered by expert, then by token. -1: no row.
struct Permutation {
  std::vector<std::int64_t> rowIdMap;    // row of each slot of a token
  std::vector<std::int64_t> splitSizes;  // rows of each expert; the last one's include all that are left over
};

/// indices: the expert of each slot; -1: dropped.
/// Errors: "MoEPermute: indices[5] is 9, but there are 8 experts, 0 to 7; -1 drops a slot."
Result<Permutation> permutationOf(const PermuteForm& form, std::span<const std::int64_t> indices);

/// The slot of each of numRows rows; -1: none.
/// Errors: "MoEUnpermute: row_id_map[5] is 9, but x has 8 rows, 0 to 7; -1 stands for no row." and the same row twice.
Result<std::vector<std::int64_t>> slotsOfRows(std::span<const std::int64_t> rowIdMap, std::int64_t numRows);

}  // namespace fuseline
