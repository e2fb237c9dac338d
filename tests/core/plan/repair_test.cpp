// Repairs: errors go, nothing else changes, and it ends.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/repair.h"

#include "core/document/file_format.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

PipelineDocument documentOf(const std::string& ops, const std::string& wires) {
  LoadedDocument loaded = parseDocument(fmt::format(
      R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}}, "symbols": {{"H": 8}},
           "pipeline": {{"inputs": [{{"id": "x", "dtype": "bf16", "shape": [4, "H"]}}], "ops": [{}], "wires": [{}],
                         "outputs": [{{"id": "y", "from": "fc.y"}}]}}}})",
      ops, wires));
  EXPECT_FALSE(hasErrors(loaded.diagnostics));
  return std::move(loaded.document);
}

std::vector<std::string> labelsOf(const RepairedDocument& repaired) {
  std::vector<std::string> labels;
  for (const AppliedRepair& each : repaired.applied) labels.push_back(each.label);
  return labels;
}

constexpr const char* kWires = R"(["x", "norm.x"], ["norm.y", "fc.x"])";

TEST(Repair, AppliesOneEditAfterTheOther) {
  const RepairedDocument repaired = repair(documentOf(
      R"({"id": "norm", "op": "RMSNrom", "attributes": {"normalized_shape": [8]}}, {"id": "fc", "op": "Linear", "attributes": {"in_features": 8, "out_featurs": 16}})",
      kWires));
  EXPECT_FALSE(hasErrors(repaired.diagnostics));
  EXPECT_EQ(repaired.document.findOp("norm")->operation, "RMSNorm");
  EXPECT_EQ(repaired.document.findOp("fc")->attributes, Json({{"in_features", 8}, {"out_features", 16}}));
  ASSERT_EQ(repaired.applied.size(), 2u);
  EXPECT_EQ(repaired.applied[0].label, "Change it to RMSNorm");
  EXPECT_EQ(repaired.applied[0].problem.code, "unknown-op");
}

TEST(Repair, LeavesWhatNoRepairIsOfferedFor) {
  const RepairedDocument repaired = repair(documentOf(
      R"({"id": "norm", "op": "RMSNrom", "attributes": {"normalized_shape": [8]}}, {"id": "fc", "op": "Linear", "attributes": {"in_features": 8, "out_features": "Kay"}})",
      kWires));
  EXPECT_EQ(labelsOf(repaired), std::vector<std::string>{"Change it to RMSNorm"});
  ASSERT_TRUE(hasErrors(repaired.diagnostics));
  EXPECT_EQ(repaired.diagnostics.front().code, "unknown-symbol");
}

TEST(Repair, ChangesNothingOfASoundPipeline) {
  const PipelineDocument document = documentOf(
      R"({"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": [8]}}, {"id": "fc", "op": "Linear", "attributes": {"in_features": 8, "out_features": 16}})",
      kWires);
  const RepairedDocument repaired = repair(document);
  EXPECT_TRUE(repaired.applied.empty());
  EXPECT_EQ(repaired.document, document);
}

/// A letter is missing from names that no other is near to: the nearest name is the one that was meant.
TEST(Repair, FindsEveryMisspeltOp) {
  static constexpr std::array kNames = {"RMSNorm", "LayerNorm", "L2Normalization", "Dropout", "ConstantScale"};
  EXPECT_TRUE(rc::check([] {
    const auto misspelt = *rc::gen::container<std::set<int>>(rc::gen::inRange(0, 5));
    std::string ops;
    std::string wires;
    std::string last = "x";
    for (int i = 0; i < 5; ++i) {
      std::string name = kNames.at(static_cast<std::size_t>(i));
      if (misspelt.contains(i)) name.erase(*rc::gen::inRange<std::size_t>(1, name.size()), 1);
      ops += fmt::format(R"({{"id": "o{}", "op": "{}"}}, )", i, name);
      wires += fmt::format(R"(["{}", "o{}.x"], )", last, i);
      last = fmt::format("o{}.y", i);
    }
    const RepairedDocument repaired =
        repair(documentOf(ops + R"({"id": "fc", "op": "Linear", "attributes": {"out_features": 16}})",
                          wires + fmt::format(R"(["{}", "fc.x"])", last)));
    for (int i = 0; i < 5; ++i)
      RC_ASSERT(repaired.document.findOp("o" + std::to_string(i))->operation == kNames.at(static_cast<std::size_t>(i)));
    const std::vector<std::string> labels = labelsOf(repaired);
    const auto isOfAName = [](const std::string& label) { return label.starts_with("Change it to "); };
    RC_ASSERT(std::ranges::count_if(labels, isOfAName) == std::ssize(misspelt));
  }));
}

}  // namespace
}  // namespace fuseline
