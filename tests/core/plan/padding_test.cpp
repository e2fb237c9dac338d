// Padding: after a repair the layer fits, and only then is one offered.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/plan/analysis.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

/// x [rows] -> fc1 (H to F) -> fc2 (F to H), with sizes as they are given: symbols, numbers or expressions.
PipelineDocument mlp(const std::string& symbols, const std::string& rows, const std::string& h, const std::string& f,
                     const std::string& recipe = "Float8CurrentScaling") {
  LoadedDocument loaded = parseDocument(fmt::format(
      R"({{"format": "fuseline-pipeline", "formatVersion": {{"major": 1, "minor": 0}}, "symbols": {{{0}}},
           "pipeline": {{"inputs": [{{"id": "x", "dtype": "bf16", "shape": [{1}, {2}]}}],
             "ops": [{{"id": "fc1", "op": "BasicLinear", "attributes": {{"in_features": {2}, "out_features": {3}}}}},
                     {{"id": "fc2", "op": "BasicLinear", "attributes": {{"in_features": {3}, "out_features": {2}}}}}],
             "wires": [["x", "fc1.x"], ["fc1.y", "fc2.x"]], "outputs": [{{"id": "y", "from": "fc2.y"}}]}},
           "recipe": {{"name": "{4}"}}}})",
      symbols, rows, h, f, recipe));
  EXPECT_FALSE(hasErrors(loaded.diagnostics));
  return std::move(loaded.document);
}

std::vector<Diagnostic> misfits(const PipelineDocument& document, const AnalysisOptions& options = {}) {
  Analysis analysis = analyze(document, options);
  EXPECT_FALSE(hasErrors(analysis.lowered.diagnostics));
  std::erase_if(analysis.lowered.diagnostics, [](const Diagnostic& each) { return each.code != "recipe-shape"; });
  return analysis.lowered.diagnostics;
}

std::vector<std::string> labelsOf(const Diagnostic& diagnostic) {
  std::vector<std::string> labels;
  for (const Repair& repair : diagnostic.repairs) labels.push_back(repair.label);
  return labels;
}

TEST(Padding, RaisesTheSymbolThatDoesNotFit) {
  PipelineDocument document = mlp(R"("M": 1000, "H": 64, "F": 128)", R"("M")", R"("H")", R"("F")");
  const std::vector<Diagnostic> before = misfits(document);
  ASSERT_EQ(before.size(), 2u);
  for (const Diagnostic& each : before)
    EXPECT_EQ(labelsOf(each), std::vector<std::string>{"Pad M to 1008 (0.8 % more)"});
  ASSERT_TRUE(applyEdit(document, before.front().repairs.front().edit));
  EXPECT_EQ(document.symbols()["M"], 1008);
  EXPECT_TRUE(misfits(document).empty());
}

TEST(Padding, TakesASmallerStepWhereOtherSizesBringTheFactor) {
  const PipelineDocument document = mlp(R"("B": 8, "S": 25, "H": 64)", R"("B", "S")", R"("H")", R"("4*H")");
  const std::vector<Diagnostic> found = misfits(document);
  ASSERT_EQ(found.size(), 2u);
  const std::vector<std::string> expected = {"Pad B to 16 (100.0 % more)", "Pad S to 26 (4.0 % more)"};
  EXPECT_EQ(labelsOf(found.front()), expected);
}

TEST(Padding, RaisesANumberWhereverItIsWritten) {
  PipelineDocument document = mlp("", "64", "100", "128");
  const std::vector<Diagnostic> found = misfits(document);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(labelsOf(found.front()), std::vector<std::string>{"Pad every 100 to 112 (12.0 % more)"});
  ASSERT_TRUE(applyEdit(document, found.front().repairs.front().edit));
  EXPECT_EQ(document.findOp("fc1")->attributes["in_features"], 112);
  EXPECT_EQ(document.findOp("fc2")->attributes["out_features"], 112);
  EXPECT_EQ(document.inputs().front().shape, Json({64, 112}));
  EXPECT_TRUE(misfits(document).empty());
}

TEST(Padding, RaisesSeveralSizesTogetherWhereOneDoesNotDo) {
  PipelineDocument document = mlp(R"("M": 30, "H": 20, "F": 128)", R"("M")", R"("H")", R"("F")");
  const std::vector<Diagnostic> found = misfits(document);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(labelsOf(found.front()), std::vector<std::string>{"Pad M to 32, H to 32"});
  ASSERT_TRUE(applyEdit(document, found.front().repairs.front().edit));
  EXPECT_TRUE(misfits(document).empty());
}

TEST(Padding, LeavesSizesAloneThatTheCallerSets) {
  const PipelineDocument document = mlp(R"("M": 64, "H": 64, "F": 128)", R"("M")", R"("H")", R"("F")");
  const std::vector<Diagnostic> found = misfits(document, {.lowering = {.symbols = {{"M", 1000}}}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found.front().repairs.empty());
}

RC_GTEST_PROP(Padding, EveryRepairMakesItsLayerFit, ()) {
  const auto size = [] { return *rc::gen::inRange(1, 400); };
  const auto recipe = *rc::gen::element<std::string>("Float8CurrentScaling", "MXFP8BlockScaling", "Float8BlockScaling");
  const PipelineDocument document =
      mlp(fmt::format(R"("B": {}, "S": {}, "H": {}, "F": {})", size(), size(), size(), size()), R"("B", "S")", R"("H")",
          R"("F")", recipe);
  for (const Diagnostic& problem : misfits(document)) {
    RC_ASSERT(!problem.repairs.empty());
    for (const Repair& repair : problem.repairs) {
      PipelineDocument padded = document;
      RC_ASSERT(applyEdit(padded, repair.edit).hasValue());
      const std::vector<Diagnostic> left = misfits(padded);
      RC_ASSERT(std::ranges::none_of(left, [&](const Diagnostic& each) { return each.node == problem.node; }));
    }
  }
}

}  // namespace
}  // namespace fuseline
