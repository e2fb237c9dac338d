// Trees of times with sums computed by hand; no time is lost in any.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/time_tree.h"

#include <numeric>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

StepRecord step(std::string name, double ns, std::vector<std::string> ops, std::string rule = {},
                std::string phase = "forward") {
  return {.name = std::move(name),
          .rule = std::move(rule),
          .phase = std::move(phase),
          .ops = std::move(ops),
          .samplesNs = {ns}};
}

StepRecord plain(const std::string& name, double ns, std::string phase = "forward") {
  return step(name, ns, {name}, {}, std::move(phase));
}

RunRecord runOf(std::vector<StepRecord> fused, std::vector<StepRecord> unfused = {}) {
  RunRecord record;
  if (!unfused.empty()) record.variants.push_back({.name = "unfused", .steps = std::move(unfused)});
  record.variants.push_back({.name = "fused", .steps = std::move(fused)});
  return record;
}

/// "fused 12 (forward 12 (a 5, b 7))": names, counts above one and times, and the children in parentheses.
std::string toText(const TimeNode& node) {
  std::string text = node.name;
  if (node.count > 1) text += fmt::format(" x{}", node.count);
  text += fmt::format(" {}{:g}", node.isEstimate ? "~" : "", node.ns);
  for (std::size_t i = 0; i < node.children.size(); ++i) text += (i == 0 ? " (" : ", ") + toText(node.children[i]);
  return node.children.empty() ? text : text + ")";
}

std::string fusedTree(const RunRecord& record, Instances instances = Instances::Apart) {
  return toText(timeTree(record, *record.variant("fused"), instances));
}

TEST(TimeTree, GroupsStepsByTheDotsOfTheirNames) {
  EXPECT_EQ(fusedTree(runOf({plain("layer1.norm", 3), plain("layer1.mlp.fc", 4), plain("y", 5),
                             plain("layer1.norm", 6, "backward")})),
            "fused 18 (forward 12 (layer1 7 (norm 3, mlp 4 (fc 4)), y 5), backward 6 (layer1 6 (norm 6)))");
}

/// fc.quantize_input and fc are siblings, in fc.
TEST(TimeTree, PutsAnOpBesideWhatIsDoneForIt) {
  EXPECT_EQ(fusedTree(runOf({step("fc.quantize_input", 1, {}), plain("fc", 4)})),
            "fused 5 (forward 5 (fc 5 (quantize_input 1, fc 4)))");
}

/// 6 of the 8 ns unfused are fc's: three quarters of the fused step's 4.
TEST(TimeTree, EstimatesTheOpsOfAFusedStepByTheUnfusedOnes) {
  const std::vector<StepRecord> unfused = {plain("l.fc", 6), plain("l.act", 2)};
  EXPECT_EQ(fusedTree(runOf({step("Epilogue(l.fc, l.act)", 4, {"l.fc", "l.act"}, "Epilogue")}, unfused)),
            "fused 4 (forward 4 (l 4 (Epilogue(fc, act) 4 (fc ~3, act ~1))))");
}

TEST(TimeTree, PutsAFusedStepWhereAllOfItsOpsAre) {
  EXPECT_EQ(fusedTree(runOf({step("Add(a.b.fc, a.add)", 4, {"a.b.fc", "a.add"}, "Add"),
                             step("Scale(a.x, c)", 1, {"a.x", "c"}, "Scale")})),
            "fused 5 (forward 5 (a 4 (Add(b.fc, add) 4), Scale(a.x, c) 1))");
}

/// Absorbed ops of another group keep their full names.
TEST(TimeTree, NamesWhatAFusedStepAbsorbsInFull) {
  StepRecord fused = step("R(a.b.c.fc, a.b.c.act)", 4, {"a.b.c.fc", "a.b.c.act"}, "R");
  fused.absorbs = {"z.scale"};
  EXPECT_EQ(fusedTree(runOf({fused}, {plain("a.b.c.fc", 2), plain("a.b.c.act", 1), plain("z.scale", 1)})),
            "fused 4 (forward 4 (a 4 (b 4 (c 4 (R(fc, act) 4 (fc ~2, act ~1, z.scale ~1))))))");
}

/// Kernels were measured, so that nothing has to be estimated.
TEST(TimeTree, ShowsTheKernelsOfATracedStep) {
  StepRecord fused = step("Epilogue(fc, act)", 10, {"fc", "act"}, "Epilogue");
  fused.activities = {{"gemm", "", {7}}, {"finish", "", {1}}, {"finish", "other grid", {1}}};
  RunRecord record = runOf({fused}, {plain("fc", 6), plain("act", 2)});
  record.variants.back().unattributed = {{"fill", "", {2}}};
  EXPECT_EQ(fusedTree(record),
            "fused 12 (forward 10 (Epilogue(fc, act) 10 (gemm 7, finish x2 2)), outside of all steps 2 (fill 2))");
}

TEST(TimeTree, LeavesOutWhatIsNotLaunched) {
  StepRecord view = plain("save", 1);
  view.isView = true;
  EXPECT_EQ(fusedTree(runOf({view, plain("a", 2)})), "fused 2 (forward 2 (a 2))");
  StepRecord untimed = plain("a", 2);
  untimed.samplesNs.clear();
  EXPECT_TRUE(timeTree(runOf({untimed}), runOf({untimed}).variants[0]).children.empty());
}

constexpr const char* kLayers = R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 1},
  "blocks": {"Mlp": {"inputs": [{"id": "x"}], "ops": [{"id": "act", "op": "GELU", "attributes": {}}],
                     "wires": [["x", "act.x"]], "outputs": [{"id": "y", "from": "act.y"}]},
             "Layer": {"inputs": [{"id": "x"}], "ops": [{"id": "mlp", "op": "block:Mlp", "attributes": {}}],
                       "wires": [["x", "mlp.x"]], "outputs": [{"id": "y", "from": "mlp.y"}]}},
  "pipeline": {"inputs": [{"id": "x", "dtype": "bf16", "shape": [8, 8]}],
               "ops": [{"id": "first", "op": "block:Layer", "attributes": {}},
                       {"id": "second", "op": "block:Layer", "attributes": {}},
                       {"id": "act", "op": "GELU", "attributes": {}}],
               "wires": [["x", "first.x"], ["first.y", "second.x"], ["second.y", "act.x"]],
               "outputs": [{"id": "y", "from": "act.y"}]}})";

TEST(TimeTree, TellsInstancesOfABlockTogether) {
  RunRecord record = runOf({plain("first.mlp.act", 1), plain("second.mlp.act", 2), plain("act", 4),
                            plain("second.mlp.act", 8, "backward"), plain("first.mlp.act", 16, "backward")});
  record.pipeline = Json::parse(kLayers);
  EXPECT_EQ(fusedTree(record, Instances::Together),
            "fused 31 (forward 7 (Layer x2 3 (Mlp x2 3 (act x2 3)), act 4), "
            "backward 24 (Layer x2 24 (Mlp x2 24 (act x2 24))))");
  EXPECT_EQ(fusedTree(record),
            "fused 31 (forward 7 (first 1 (mlp 1 (act 1)), second 2 (mlp 2 (act 2)), act 4), "
            "backward 24 (second 8 (mlp 8 (act 8)), first 16 (mlp 16 (act 16))))");
}

TEST(TimeTree, NeedsNoPipelineThatCanBeRead) {
  RunRecord record = runOf({plain("first.mlp.act", 1)});
  record.pipeline = "not a pipeline";
  EXPECT_EQ(fusedTree(record, Instances::Together), "fused 1 (forward 1 (first 1 (mlp 1 (act 1))))");
}

double leavesNs(const TimeNode& node) {
  if (node.level == TimeLevel::Step) return node.ns;
  return std::accumulate(node.children.begin(), node.children.end(), 0.0,
                         [](double ns, const TimeNode& child) { return ns + leavesNs(child); });
}

TEST(TimeTree, LosesNoTimeWhateverTheNamesAre) {
  EXPECT_TRUE(rc::check([] {
    const auto name = rc::gen::container<std::string>(rc::gen::element('a', 'b', '.'));
    std::vector<StepRecord> steps;
    double totalNs = 0.0;
    for (const std::string& each : *rc::gen::container<std::vector<std::string>>(name)) {
      const int ns = *rc::gen::inRange(0, 1000);
      const bool isFused = *rc::gen::arbitrary<bool>();
      totalNs += ns;
      steps.push_back(step(each, ns, isFused ? std::vector{each, *name} : std::vector{each}, isFused ? "R" : ""));
    }
    const RunRecord record = runOf(steps);
    const TimeNode tree = timeTree(record, record.variants[0]);
    RC_ASSERT(tree.ns == totalNs);
    RC_ASSERT(leavesNs(tree) == totalNs);
    RC_ASSERT(tree.steps.size() == steps.size());
  }));
}

}  // namespace
}  // namespace fuseline
