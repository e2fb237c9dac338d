// GroupedLinear apart from its definition: facts about its tensors that its kernels need, too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// Parameters that belong together: one for each group, or one for all with the groups on its first axis.
struct GroupedParameter {
  int firstSlot = 0;
  int numSlots = 0;
  bool isSingle = false;
};

/// Which tensors a GroupedLinear has.
struct GroupedForm {
  static constexpr int kSplitSizes = 1;  // slots of its extra inputs
  static constexpr int kScales = 2;

  std::int64_t numGroups = 1;
  GroupedParameter weights;
  GroupedParameter biases;  // without slots: no bias
  bool isBiasScaled = false;

  bool hasBias() const { return biases.numSlots > 0; }
};

/// Are they those of a GroupedLinear?
bool isGrouped(const Attributes& attributes);
GroupedForm groupedForm(const Attributes& attributes);

/// Rows [first, first + size).
struct RowGroup {
  std::int64_t first = 0;
  std::int64_t size = 0;
};

/// Errors: a size is negative, or their sum is not the number of rows:
/// "split_sizes is [3, 2], but x has 6 rows; the sizes must add up to 6."
Result<std::vector<RowGroup>> divideRows(std::span<const std::int64_t> sizes, std::int64_t rows);

/// distribution and zipf_exponent. input: what is drawn, such as "split_sizes".
std::vector<AttributeSpec> distributionAttributes(const std::string& input);

/// The share of each group, which add up to 1. Nothing: the distribution is random.
std::optional<std::vector<double>> groupShares(const Attributes& attributes, std::size_t numGroups);

}  // namespace fuseline
