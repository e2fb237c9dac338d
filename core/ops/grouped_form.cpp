// Reads the form of a GroupedLinear from its attributes, and checks split sizes.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/grouped_form.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::size_t kMostShown = 16;

/// "[3, 2]"; a long list is cut short.
std::string sizesText(std::span<const std::int64_t> sizes) {
  const auto shown = sizes.first(std::min(sizes.size(), kMostShown));
  return fmt::format("[{}{}]", fmt::join(shown, ", "), shown.size() < sizes.size() ? ", ..." : "");
}

/// Is the sum `rows`? No size is negative. The sum itself might not fit into 64 bits.
bool addUpTo(std::span<const std::int64_t> sizes, std::int64_t rows) {
  for (const std::int64_t size : sizes) {
    if (size > rows) return false;
    rows -= size;
  }
  return rows == 0;
}

Verdict checkSizes(std::span<const std::int64_t> sizes, std::int64_t rows) {
  const auto negative = std::ranges::find_if(sizes, [](std::int64_t size) { return size < 0; });
  if (negative != sizes.end())
    return Verdict::no(fmt::format("split_sizes is {}, but a group cannot have {} rows; x has {} rows to divide.",
                                   sizesText(sizes), *negative, rows));
  if (addUpTo(sizes, rows)) return Verdict::yes();
  return Verdict::no(
      fmt::format("split_sizes is {}, but x has {} rows; the sizes must add up to {}.", sizesText(sizes), rows, rows));
}

}  // namespace

/// A router has num_groups, too.
bool isGrouped(const Attributes& attributes) { return attributes.has("single_grouped_weight"); }

GroupedForm groupedForm(const Attributes& attributes) {
  GroupedForm form{.numGroups = attributes.integer("num_groups")};
  const auto parameter = [&](int firstSlot, bool isSingle) -> GroupedParameter {
    return {.firstSlot = firstSlot, .numSlots = isSingle ? 1 : static_cast<int>(form.numGroups), .isSingle = isSingle};
  };
  form.weights = parameter(0, attributes.boolean("single_grouped_weight"));
  if (!attributes.boolean("bias")) return form;
  form.biases = parameter(form.weights.numSlots, attributes.boolean("single_grouped_bias"));
  form.isBiasScaled = attributes.boolean("scale_bias");
  return form;
}

Result<std::vector<RowGroup>> divideRows(std::span<const std::int64_t> sizes, std::int64_t rows) {
  if (const Verdict verdict = checkSizes(sizes, rows); !verdict) return Error{verdict.reason()};
  std::vector<RowGroup> groups;
  for (const std::int64_t size : sizes)
    groups.push_back({.first = groups.empty() ? 0 : groups.back().first + groups.back().size, .size = size});
  return groups;
}

std::vector<AttributeSpec> distributionAttributes(const std::string& input) {
  return {{.name = "distribution",
           .type = AttributeType::Text,
           .defaultValue = std::string("random"),
           .choices = {"random", "even", "zipf"},
           .help = fmt::format("How {} are drawn if they are not given: at random, evenly, or by Zipf's law, with "
                               "group 0 the largest.",
                               input)},
          {.name = "zipf_exponent",
           .type = AttributeType::Real,
           .defaultValue = 1.0,
           .minimum = 0,
           .maximum = 16,
           .help = "With distribution zipf: the share of group g is proportional to (g + 1)^-zipf_exponent."}};
}

std::optional<std::vector<double>> groupShares(const Attributes& attributes, std::size_t numGroups) {
  const std::string& distribution = attributes.text("distribution");
  if (distribution == "random") return std::nullopt;
  const double exponent = distribution == "zipf" ? attributes.real("zipf_exponent") : 0.0;
  std::vector<double> shares;
  for (std::size_t group = 1; group <= numGroups; ++group)
    shares.push_back(std::pow(static_cast<double>(group), -exponent));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace fuseline
