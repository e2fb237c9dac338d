// Builders that make a graph in one line: chain(DType::BF16, {8, 16}, {linear(32), bias(), gelu()}).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fuseline::testing {

/// Dtypes in which pipelines compute.
inline constexpr DType kFloatTypes[] = {DType::F32, DType::BF16, DType::F16};

/// One op of a chain. Attributes that are left out take their defaults; widths are filled in from the input.
struct Link {
  std::string operation;
  Attributes attributes;
  std::string id;         // empty: "<operation><position>", in lower case
  std::string extraFrom;  // the value of the extra input: a name such as "save.extra"; empty: a new pipeline input
  std::vector<std::string> furtherFrom = {};  // the same for the inputs after that; missing ones are new inputs
  bool isSwapped = false;  // the chain continues through the extra input, and `extraFrom` is the main one
  std::string mainFrom;    // the value of the main input; empty: the chain's last
  std::string sequential;  // the nested Sequential that contains it: "layer1", "layer1.mlp"; empty: none
};

Link link(std::string operation, std::string id = {}, std::string extraFrom = {});
Link linear(std::int64_t outFeatures, std::string id = {});
Link inPlace(Link link, bool value = true);
/// A link of an op with two inputs of one shape, with the inputs swapped.
Link swapped(Link link);
/// Reads this value, such as "save.extra", in place of the chain's last.
Link reading(std::string value, Link link);
/// In a nested Sequential, together with its neighbors of the same path.
Link inside(std::string path, Link link);
Link with(Link link, std::string attribute, AttributeValue value);
/// Packed queries, keys and values of a number of heads and groups of 8 channels: a linear, Reshape to [S, 1, W], and
/// a Split "split".
std::vector<Link> packedHeads(std::int64_t heads, std::int64_t groups);
/// Attention "attention" of these heads, which reads queries, keys and values from these places.
Link attentionOf(std::int64_t heads, std::int64_t groups, std::array<std::string, 3> from);
Link rotaryOf(std::string id, std::string from);
/// Each token goes to two of four experts, of which each has a multiple of 32 rows. linear: reads the rows, which have
/// this width; none: a GroupedLinear with split_sizes of the permutation.
std::vector<Link> expertLinks(std::int64_t width, const std::optional<Link>& linear = std::nullopt);
Link quantizeLink(bool forward, bool backward, std::string id = {});
/// A link of any op: with a width if it requires one.
Link sampleLink(const std::string& operation);

/// A pipeline of the main tensor x: [.., shape.back()]. Extra outputs without consumers stay unread; `extraOutputs`
/// makes pipeline outputs of values by name.
struct ChainOptions {
  ExecutionMode pass = ExecutionMode::Training;
  bool inputRequiresGradient = true;
  std::vector<std::string> extraOutputs;
  std::string recipe;       // empty: none
  Attributes recipeFields;  // in place of its defaults
};
/// The recipe of the options.
std::optional<Recipe> recipeOf(const ChainOptions& options);
Graph chain(DType dtype, Shape shape, const std::vector<Link>& links, const ChainOptions& options = {});

}  // namespace fuseline::testing
