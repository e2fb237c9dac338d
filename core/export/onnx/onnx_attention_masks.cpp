// Masks are compared element by element with those that attention has names for.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_attention_masks.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fuseline {

namespace {

std::optional<NumberArray> expanded(const NumberArray& array, const Shape& shape) {
  const auto all = broadcastShape(array.shape, shape);
  if (!all || *all != shape) return std::nullopt;
  NumberArray result{shape, std::vector<double>(static_cast<std::size_t>(numElements(shape)))};
  for (std::size_t i = 0; i < result.values.size(); ++i)
    result.values[i] = broadcastAt(array, shape, static_cast<std::int64_t>(i));
  return result;
}

/// Sums, or what a condition leaves of them.
std::optional<NumberArray> stepped(const NumberArray& sum, const ScoreStep& step, const NumberArray& given) {
  const auto shape = broadcastShape(sum.shape, given.shape);
  if (!shape) return std::nullopt;
  NumberArray result{*shape, std::vector<double>(static_cast<std::size_t>(numElements(*shape)))};
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    const double before = broadcastAt(sum, *shape, place), value = broadcastAt(given, *shape, place);
    const bool isKept = (value != 0.0) == step.isKeptIfTrue;
    result.values[i] = step.kind == ScoreStep::Kind::Bias ? before + value : isKept ? before : step.fill;
  }
  return result;
}

bool isAlikeOverLead(const NumberArray& array) {
  return std::all_of(array.shape.begin(),
                     array.shape.end() - std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(array.shape.size())),
                     [](std::int64_t extent) { return extent == 1; });
}

/// Scores in another shape with the same last two extents.
std::optional<NumberArray> reshaped(const NumberArray& sum, const Shape& from, const Shape& to) {
  if (isAlikeOverLead(sum)) {
    const std::size_t kept = std::min<std::size_t>(2, sum.shape.size());
    return NumberArray{{sum.shape.end() - static_cast<std::ptrdiff_t>(kept), sum.shape.end()}, sum.values};
  }
  auto all = expanded(sum, from);
  if (!all || numElements(to) != numElements(from)) return std::nullopt;
  all->shape = to;
  return all;
}

/// All matrices that differ: [1 or B, 1 or H, Sq, Sk].
NumberArray byBatchAndHead(const NumberArray& array, std::int64_t heads) {
  const std::int64_t Sq = array.shape[array.shape.size() - 2], Sk = array.shape.back(), size = Sq * Sk;
  const std::int64_t B = numElements(array.shape) / std::max<std::int64_t>(1, size * heads);
  const auto at = [&](std::int64_t entry, std::int64_t head) {
    return array.values.begin() + (entry * heads + head) * size;
  };
  bool isAlikeInBatch = true, isAlikeInHeads = true;
  for (std::int64_t entry = 0; entry < B; ++entry)
    for (std::int64_t head = 0; head < heads; ++head) {
      isAlikeInBatch = isAlikeInBatch && std::equal(at(entry, head), at(entry, head) + size, at(0, head));
      isAlikeInHeads = isAlikeInHeads && std::equal(at(entry, head), at(entry, head) + size, at(entry, 0));
    }
  NumberArray result{{isAlikeInBatch ? 1 : B, isAlikeInHeads ? 1 : heads, Sq, Sk}, {}};
  for (std::int64_t entry = 0; entry < result.shape[0]; ++entry)
    for (std::int64_t head = 0; head < result.shape[1]; ++head)
      result.values.insert(result.values.end(), at(entry, head), at(entry, head) + size);
  return result;
}

// ---- names

/// Which keys each query sees.
struct Kept {
  std::int64_t Sq = 0, Sk = 0;
  std::vector<bool> flags;
  bool at(std::int64_t i, std::int64_t j) const { return flags[static_cast<std::size_t>(i * Sk + j)]; }
};

/// Nothing: something is added to what is seen, or a row that sees nothing is not zero.
std::optional<Kept> keptOf(const NumberArray& added) {
  if (added.shape.size() != 4 || added.shape[0] != 1 || added.shape[1] != 1) return std::nullopt;
  Kept kept{added.shape[2], added.shape[3], {}};
  for (const double value : added.values) {
    if (value != 0.0 && !(value <= kMaskingScore)) return std::nullopt;
    kept.flags.push_back(value == 0.0);
  }
  for (std::int64_t i = 0; i < kept.Sq; ++i) {
    bool seesAny = false, isInfinite = true;
    for (std::int64_t j = 0; j < kept.Sk; ++j) {
      seesAny = seesAny || kept.at(i, j);
      isInfinite = isInfinite && std::isinf(added.values[static_cast<std::size_t>(i * kept.Sk + j)]);
    }
    if (!seesAny && !isInfinite) return std::nullopt;
  }
  return kept;
}

/// Sides of a window around the diagonal, and whether they are what the mask keeps.
struct Window {
  std::int64_t delta = 0, left = 0, right = 0;
};

std::optional<Window> windowOf(const Kept& kept, std::int64_t delta) {
  Window window{delta, -1, -1};
  bool isLeftCut = false, isRightCut = false;
  for (std::int64_t i = 0; i < kept.Sq; ++i)
    for (std::int64_t j = 0; j < kept.Sk; ++j) {
      const std::int64_t distance = i + delta - j;  // to the left
      if (kept.at(i, j))
        window.left = std::max(window.left, distance), window.right = std::max(window.right, -distance);
      if (!kept.at(i, j) && distance > 0) isLeftCut = true;
      if (!kept.at(i, j) && distance < 0) isRightCut = true;
    }
  window.left = isLeftCut ? std::max<std::int64_t>(window.left, 0) : -1;
  window.right = isRightCut ? std::max<std::int64_t>(window.right, 0) : -1;
  for (std::int64_t i = 0; i < kept.Sq; ++i)
    for (std::int64_t j = 0; j < kept.Sk; ++j) {
      const std::int64_t distance = i + delta - j;
      const bool isInside =
          (window.left < 0 || distance <= window.left) && (window.right < 0 || -distance <= window.right);
      if (isInside != kept.at(i, j)) return std::nullopt;
    }
  return window;
}

Json attributesOf(const Kept& kept, const Window& window) {
  Json attributes = Json::object();
  const bool isCausal = window.right == 0 && kept.Sk > 1;
  if (isCausal)
    attributes["attn_mask_type"] = window.delta == 0 ? "causal" : "causal_bottom_right";
  else
    attributes["attn_mask_type"] = "no_mask";
  if (isCausal && window.left >= 0) attributes["window_size"] = {window.left, 0};
  if (!isCausal && (window.left >= 0 || window.right >= 0)) {
    const auto side = [&](std::int64_t keys) { return keys < 0 ? kAllKeys : keys; };
    attributes["window_size"] = {side(window.left), side(window.right)};
    attributes["bottom_right_diagonal"] = window.delta != 0;
  }
  return attributes;
}

}  // namespace

std::optional<NumberArray> addedScores(const AttentionParts& parts, OnnxNumbers& numbers, std::int64_t heads) {
  auto shape = numbers.extents(parts.scores);
  NumberArray sum{{}, {0.0}};
  for (const ScoreStep& step : parts.steps) {
    const auto made = step.made.empty() ? std::nullopt : numbers.extents(step.made);
    const auto given = step.kind == ScoreStep::Kind::Reshape ? nullptr : numbers.of(step.tensor);
    std::optional<NumberArray> next;
    if (given && !given->values.empty()) next = stepped(sum, step, *given);
    if (step.kind == ScoreStep::Kind::Reshape && shape && made) next = reshaped(sum, *shape, *made);
    if (!next) return std::nullopt;
    sum = std::move(*next);
    if (made) shape = made;
  }
  const auto output = numbers.extents(parts.output);
  const std::int64_t Sk = sum.shape.empty() ? 1 : sum.shape.back();
  if (!shape && output && output->size() == 4) shape = Shape{(*output)[0], (*output)[1], (*output)[2], Sk};
  if (!shape && output && output->size() == 3) shape = Shape{(*output)[0], heads, (*output)[1], Sk};
  if (!shape || shape->size() < 2) return std::nullopt;
  if (isAlikeOverLead(sum)) {
    const Shape matrix = {1, 1, (*shape)[shape->size() - 2], shape->back()};
    const std::size_t kept = std::min<std::size_t>(2, sum.shape.size());
    return expanded({{sum.shape.end() - static_cast<std::ptrdiff_t>(kept), sum.shape.end()}, sum.values}, matrix);
  }
  const auto all = expanded(sum, *shape);
  return all && !all->values.empty() ? std::optional(byBatchAndHead(*all, heads)) : std::nullopt;
}

std::optional<Json> namedMask(const NumberArray& added) {
  const std::optional<Kept> kept = keptOf(added);
  if (!kept) return std::nullopt;
  for (const std::int64_t delta : {std::int64_t{0}, kept->Sk - kept->Sq})
    if (const auto window = windowOf(*kept, delta)) return attributesOf(*kept, *window);
  return std::nullopt;
}

}  // namespace fuseline
