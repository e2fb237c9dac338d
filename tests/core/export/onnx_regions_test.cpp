// Regions of nodes that are no ops: connected nodes, without cycles through ops.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_regions.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using Names = std::vector<std::string>;
using Parts = std::vector<GraphPart>;

GraphPart op(Names inputs, const char* output) { return {true, std::move(inputs), {output}}; }
GraphPart node(Names inputs, const char* output) { return {false, std::move(inputs), {output}}; }

/// "q k v -> a".
Names textsOf(const std::vector<Region>& regions) {
  Names texts;
  for (const Region& region : regions)
    texts.push_back(fmt::format("{} -> {}", fmt::join(region.inputs, " "), fmt::join(region.outputs, " ")));
  return texts;
}

TEST(OnnxRegions, AreWhatHangsTogetherBetweenOps) {
  const Parts parts = {op({"x"}, "q"), op({"x"}, "k"), node({"k"}, "kt"), node({"q", "kt"}, "s"), op({"s"}, "y")};
  EXPECT_EQ(textsOf(regionsOf(parts, {"x"})), Names{"k q -> s"});
}

// Operations on v that are independent of q belong to the same region.
TEST(OnnxRegions, TakeAlongWhatIsPreparedForThem) {
  const Parts parts = {op({"x"}, "q"),   op({"x"}, "v"),          node({"v"}, "vt"), node({"q"}, "qt"),
                       op({"qt"}, "qn"), node({"qn", "vt"}, "s"), op({"s"}, "y")};
  EXPECT_EQ(textsOf(regionsOf(parts, {"x"})), (Names{"q -> qt", "v qn -> s"}));
}

TEST(OnnxRegions, AreCutWhereAnOpStandsBetween) {
  const Parts parts = {node({"x"}, "a"), op({"a"}, "b"), node({"b", "a"}, "c"), op({"c"}, "y")};
  EXPECT_EQ(textsOf(regionsOf(parts, {"x"})), (Names{"x -> a", "b a -> c"}));
}

TEST(OnnxRegions, AreNoneAtTheEndsOfAGraph) {
  EXPECT_TRUE(regionsOf({op({"x"}, "a"), node({"a"}, "y")}, {"x"}).empty());
  EXPECT_TRUE(regionsOf({node({"ids"}, "rows"), op({"rows"}, "y")}, {"x"}).empty());
  EXPECT_TRUE(regionsOf({}, {}).empty());
}

/// Tensors t0, t1, ... of parts that read some of the previous ones; the first is given.
Parts arbitraryParts() {
  const auto numParts = *rc::gen::inRange<std::size_t>(1, 24);
  Parts parts;
  for (std::size_t i = 0; i < numParts; ++i) {
    GraphPart part{.isOperation = *rc::gen::arbitrary<bool>(), .inputs = {}, .outputs = {fmt::format("t{}", i + 1)}};
    for (const std::size_t input :
         *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, i + 1)))
      part.inputs.push_back(fmt::format("t{}", input));
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Ops, and regions as single ops, can be sorted so that each reads only outputs of earlier ones.
bool canRun(const Parts& parts, const std::vector<Region>& regions) {
  std::map<std::size_t, std::size_t> unitOf;  // of parts
  for (std::size_t region = 0; region < regions.size(); ++region)
    for (const std::size_t part : regions[region].parts) unitOf[part] = parts.size() + region;
  std::map<std::string, std::size_t> makers;
  for (std::size_t i = 0; i < parts.size(); ++i) makers[parts[i].outputs[0]] = unitOf.contains(i) ? unitOf[i] : i;
  std::map<std::size_t, std::set<std::size_t>> before;
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (const std::string& input : parts[i].inputs)
      if (const auto maker = makers.find(input); maker != makers.end())
        if (const std::size_t unit = unitOf.contains(i) ? unitOf[i] : i; maker->second != unit)
          before[unit].insert(maker->second);
  std::map<std::size_t, int> state;
  const std::function<bool(std::size_t)> visit = [&](std::size_t unit) {
    if (state[unit] != 0) return state[unit] == 2;
    state[unit] = 1;
    const bool isFine = std::ranges::all_of(before[unit], visit);
    state[unit] = 2;
    return isFine;
  };
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!visit(unitOf.contains(i) ? unitOf[i] : i)) return false;
  return true;
}

RC_GTEST_PROP(OnnxRegions, NeverReadWhatComesOfThem, ()) {
  const Parts parts = arbitraryParts();
  const std::vector<Region> regions = regionsOf(parts, {"t0"});
  RC_ASSERT(canRun(parts, regions));
  for (const Region& region : regions) {
    RC_ASSERT(!region.inputs.empty() && !region.outputs.empty());
    for (const std::size_t part : region.parts) RC_ASSERT(!parts[part].isOperation);
    for (const std::string& output : region.outputs)
      RC_ASSERT(std::ranges::any_of(region.parts, [&](std::size_t part) { return parts[part].outputs[0] == output; }));
  }
}

// As tensors of hostile files may be: without a producer, with several, and computed from themselves.
TEST(OnnxRegions, ComeToAnEndInRings) {
  EXPECT_TRUE(regionsOf({node({"b"}, "a"), node({"a"}, "b")}, {}).empty());
  EXPECT_TRUE(regionsOf({node({"a"}, "a"), op({"a"}, "a")}, {}).empty());
}

}  // namespace
}  // namespace fuseline
