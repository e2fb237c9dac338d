// Row-parallel layers that are given whole rows are warned of, with both numbers.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/plan/analysis.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline {
namespace {

/// x [64, 128] through an op, a GELU and a row-parallel layer.
std::vector<std::string> warningsOf(const std::string& first, std::int64_t ranks) {
  const LoadedDocument loaded = parseDocument(fmt::format(
      R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}},
           "pipeline": {{"inputs": [{{"id": "x", "dtype": "bf16", "shape": [64, 128]}}],
             "ops": [{{"id": "first", {}}}, {{"id": "act", "op": "GELU"}}, {{"id": "fc", "op": "Linear",
               "attributes": {{"in_features": 128, "out_features": 32, "tensor_parallel_mode": "row"}}}}],
             "wires": [["x", "first.x"], ["first.y", "act.x"], ["act.y", "fc.x"]],
             "outputs": [{{"id": "y", "from": "fc.y"}}]}}}})",
      first));
  const Analysis analysis = analyze(loaded.document, {.ranks = ranks});
  EXPECT_TRUE(analysis.isRunnable());
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : analysis.lowered.diagnostics)
    if (diagnostic.code == "row-parallel-input") messages.push_back(diagnostic.message);
  return messages;
}

std::string linearOf(const char* mode) {
  return fmt::format(
      R"("op": "Linear", "attributes": {{"in_features": 128, "out_features": 128, "tensor_parallel_mode": "{}"}})",
      mode);
}

TEST(RowParallel, ReadsNoWholeRows) {
  const std::vector<std::string> behindNorm =
      warningsOf(R"("op": "LayerNorm", "attributes": {"normalized_shape": [128]})", 2);
  ASSERT_EQ(behindNorm.size(), 1U);
  EXPECT_NE(behindNorm.front().find("a share of 64 elements"), std::string::npos) << behindNorm.front();
  EXPECT_NE(behindNorm.front().find("first produces all 128"), std::string::npos) << behindNorm.front();
  EXPECT_EQ(warningsOf(linearOf("none"), 4).size(), 1U);
  EXPECT_EQ(warningsOf(linearOf("none"), 1).size(), 1U);
}

TEST(RowParallel, ReadsTheSharesOfAColumnParallelLayerAndOfItsCaller) {
  EXPECT_TRUE(warningsOf(linearOf("column"), 2).empty());
  EXPECT_TRUE(warningsOf(R"("op": "ReLU")", 2).empty());
}

}  // namespace
}  // namespace fuseline
