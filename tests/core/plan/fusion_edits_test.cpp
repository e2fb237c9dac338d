// Rules and fusions are switched off and on by edits.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/fusion_edits.h"

#include "core/plan/fusion_toggle.h"
#include "tests/core/edit/edit_scene.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

/// Two linear layers with an activation each, so that one rule has two places.
std::string twoLayers() {
  return R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
    "inputs": [{"id": "x", "dtype": "bf16", "shape": [16, 32]}],
    "ops": [{"id": "fc1", "op": "Linear", "attributes": {"in_features": 32, "out_features": 32, "bias": false}},
            {"id": "act1", "op": "GELU"},
            {"id": "fc2", "op": "Linear", "attributes": {"in_features": 32, "out_features": 32, "bias": false}},
            {"id": "act2", "op": "GELU"}],
    "wires": [["x", "fc1.x"], ["fc1.y", "act1.x"], ["act1.y", "fc2.x"], ["fc2.y", "act2.x"]],
    "outputs": [{"id": "y", "from": "act2.y"}]}})";
}

/// A document that is planned again after every edit.
struct Planned {
  explicit Planned(const std::string& text) : history(parseDocument(text).document) {}
  History history;
  Analysis analysis = analyze(history.document());
  const PipelineDocument& document() const { return history.document(); }

  const Attempt& attempt(const char* rule, const char* op) const {
    const auto& attempts = analysis.report.attempts;
    return *std::ranges::find_if(attempts, [&](const Attempt& one) {
      return one.rule->name == rule && one.stepsMatched > 1 &&
             std::ranges::any_of(one.nodes, [&](NodeId id) { return analysis.graph().node(id).isAt(op); });
    });
  }
  Outcome outcome(const char* rule, const char* op) const { return attempt(rule, op).outcome; }
  bool apply(const Edit& edit) {
    const bool isUndone = appliesAndUndoes(history, edit);
    analysis = analyze(history.document());
    return isUndone;
  }
};

constexpr const char* kEpilogue = "ForwardLinearEpilogue";
constexpr const char* kJoint = "ForwardBackwardSwiGLULinear";

TEST(FusionEdits, SwitchesARuleOffAndOn) {
  EditScene s;
  const FusionRule plain{.name = "Plain"};
  ASSERT_TRUE(isRuleEnabled(s.document(), plain));
  ASSERT_TRUE(s.history.apply(setRuleEnabled(s.document(), plain, false)));
  ASSERT_FALSE(isRuleEnabled(s.document(), plain));
  ASSERT_TRUE(s.history.apply(setRuleEnabled(s.document(), plain, true)));
  ASSERT_TRUE(isRuleEnabled(s.document(), plain));

  const FusionRule priced{.name = "Priced", .price = "It takes time."};
  ASSERT_FALSE(isRuleEnabled(s.document(), priced));
  ASSERT_TRUE(s.history.apply(setRuleEnabled(s.document(), priced, true)));
  ASSERT_TRUE(isRuleEnabled(s.document(), priced));
  ASSERT_TRUE(s.document().fusion()["with"] == Json({"Priced"}));
  ASSERT_TRUE(s.history.apply(removeRuleSwitch(s.document(), "with", "Priced")));
  ASSERT_FALSE(isRuleEnabled(s.document(), priced));
}

TEST(FusionEdits, SwitchesAFusionOffAtOnePlace) {
  Planned p(twoLayers());
  EXPECT_EQ(p.outcome(kEpilogue, "fc1"), Outcome::Fused);
  const auto off = fusionToggle(p.document(), p.analysis, {"fc1"}, kEpilogue);
  ASSERT_TRUE(off && p.apply(off->edit));
  ASSERT_TRUE(p.document().fusion()["without"] == Json({"ForwardLinearEpilogue@fc1"}));
  EXPECT_EQ(p.outcome(kEpilogue, "fc1"), Outcome::SwitchedOff);
  EXPECT_EQ(p.outcome(kEpilogue, "fc2"), Outcome::Fused);
  ASSERT_TRUE(isOffHere(p.document(), p.analysis.graph(), p.attempt(kEpilogue, "fc1")));
  const auto on = fusionToggle(p.document(), p.analysis, {"fc1"}, kEpilogue);
  ASSERT_TRUE(on && p.apply(on->edit));
  ASSERT_FALSE(p.document().fusion().contains("without"));
  EXPECT_EQ(p.outcome(kEpilogue, "fc1"), Outcome::Fused);

  ASSERT_TRUE(p.apply(setRuleEnabled(p.document(), *p.attempt(kEpilogue, "fc1").rule, false)));
  ASSERT_FALSE(isOffHere(p.document(), p.analysis.graph(), p.attempt(kEpilogue, "fc1")));
}

TEST(FusionEdits, UsesAFusionThatAnotherHasTakenTheOpsFrom) {
  Planned p(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0}, "pipeline": {
    "inputs": [{"id": "x", "dtype": "bf16", "shape": [8, 16]}, {"id": "r", "dtype": "bf16", "shape": [8, 16]}],
    "ops": [{"id": "act", "op": "GELU"}, {"id": "add", "op": "AddExtraInput"},
            {"id": "norm", "op": "RMSNorm", "attributes": {"normalized_shape": [16]}}],
    "wires": [["x", "act.x"], ["act.y", "add.x"], ["r", "add.extra"], ["add.y", "norm.x"]],
    "outputs": [{"id": "y", "from": "norm.y"}]}})");
  EXPECT_EQ(p.outcome("ForwardAddNorm", "add"), Outcome::TakenByAnother);
  const auto use = useHere(p.document(), p.analysis, p.attempt("ForwardAddNorm", "add"));
  ASSERT_TRUE(use && p.apply(*use));
  EXPECT_EQ(p.outcome("ForwardAddNorm", "add"), Outcome::Fused);
  // And back: a later request takes precedence over an earlier one.
  const auto back = useHere(p.document(), p.analysis, p.attempt("ForwardElementwiseChain", "act"));
  ASSERT_TRUE(back && p.apply(*back));
  EXPECT_EQ(p.outcome("ForwardElementwiseChain", "act"), Outcome::Fused);
  ASSERT_TRUE(p.document().fusion()["with"] == Json({"ForwardElementwiseChain@act"}));
}

TEST(FusionEdits, UsesAFusionThatHasAPriceAndGivesItsOpsBack) {
  const std::vector<DocumentTemplate>& templates = documentTemplates();
  const auto mlp = std::ranges::find(templates, "llama-mlp", &DocumentTemplate::name);
  ASSERT_TRUE(mlp != templates.end());
  Planned p(mlp->text);
  EXPECT_EQ(p.outcome(kJoint, "act"), Outcome::OnRequest);
  const auto use = useHere(p.document(), p.analysis, p.attempt(kJoint, "act"));
  ASSERT_TRUE(use && p.apply(*use));
  EXPECT_EQ(p.outcome(kJoint, "act"), Outcome::Fused);
  const auto off = fusionToggle(p.document(), p.analysis, {"act"}, kJoint);
  ASSERT_TRUE(off && p.apply(off->edit));
  EXPECT_EQ(p.outcome(kJoint, "act"), Outcome::OnRequest);
  ASSERT_TRUE(!p.document().fusion().contains("with") && !p.document().fusion().contains("without"));
}

}  // namespace
}  // namespace fuseline::testing
