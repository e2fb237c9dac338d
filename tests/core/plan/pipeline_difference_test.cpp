// Two pipelines side by side: the counted differences, and the compared figures.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/pipeline_difference.h"

#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

PipelineDocument templateNamed(const std::string& name) {
  for (const DocumentTemplate& entry : documentTemplates())
    if (entry.name == name) return parseDocument(entry.text).document;
  ADD_FAILURE() << "there is no template " << name;
  return {};
}

PipelineDifference differenceAfter(const PipelineDocument& base, const Edit& edit) {
  PipelineDocument next = base;
  EXPECT_TRUE(applyEdit(next, edit));
  return pipelineDifference({base, analyze(base)}, {next, analyze(next)});
}

TEST(PipelineDifference, OfTheSameIsEmptyButForItsFigures) {
  const PipelineDocument base = templateNamed("llama-mlp");
  const Analysis analysis = analyze(base);
  const PipelineDifference difference = pipelineDifference({base, analysis}, {base, analysis});
  EXPECT_TRUE(difference.changes.empty());
  EXPECT_TRUE(difference.plans.empty());
  ASSERT_NE(findFigure(difference, "fused", "launches"), nullptr);
  for (const PlanFigure& figure : difference.figures) EXPECT_EQ(figure.base, figure.next) << figure.name;
}

TEST(PipelineDifference, TellsWhatFusesNoMoreAndWhatThatCosts) {
  const PipelineDifference difference = differenceAfter(templateNamed("gpt-mlp"), SetFusion{Json{{"rules", "te"}}});
  ASSERT_FALSE(difference.plans.empty());
  const PlanFigure* launches = findFigure(difference, "fused", "launches");
  ASSERT_NE(launches, nullptr);
  EXPECT_GT(launches->next, launches->base);  // the rule set of all fuses more
  const PlanFigure* unfused = findFigure(difference, "unfused", "launches");
  EXPECT_EQ(unfused->next, unfused->base);
}

TEST(PipelineDifference, HasNoPlansWhereOneHasErrors) {
  const PipelineDocument base = templateNamed("llama-mlp");
  const PipelineDifference difference =
      differenceAfter(base, SetAttribute{base.ops().front().id, "no_such_attribute", 7});
  EXPECT_EQ(difference.changes.size(), 1u);
  EXPECT_TRUE(difference.plans.empty());
  EXPECT_EQ(findFigure(difference, "fused", "launches"), nullptr);
}

TEST(CountChanges, CountsOpsByKindAndTheRestTogether) {
  using Section = DocumentChange::Section;
  using Kind = DocumentChange::Kind;
  const auto change = [](Section section, Kind kind, const char* block = "") {
    return DocumentChange{.section = section, .block = block, .kind = kind, .id = "a", .newId = {}, .fields = {}};
  };
  const ChangeCounts counts =
      countChanges({change(Section::Ops, Kind::Added), change(Section::Ops, Kind::Added),
                    change(Section::Ops, Kind::Removed), change(Section::Ops, Kind::Renamed),
                    change(Section::Ops, Kind::Changed, "Inner"), change(Section::Wires, Kind::Changed)});
  EXPECT_EQ(counts, (ChangeCounts{.added = 2, .removed = 1, .changed = 0, .renamed = 1, .others = 2}));
}

}  // namespace
}  // namespace fuseline::testing
