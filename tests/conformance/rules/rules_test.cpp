// Every rule of the rule book: it fires on its own pipelines, each condition refuses with its sentence and its repair
// makes it fire, and fused and unfused passes can stand in for each other.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "tests/support/pipelines.h"
#include "tests/support/rule_samples.h"
#include "tests/support/run_plan.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// A rule book with one rule only, so that no other fusion is in the way.
RuleCatalog only(const FusionRule& rule) {
  RuleCatalog catalog;
  EXPECT_TRUE(catalog.registerFusion(rule));
  return catalog;
}

FusionReport fuseWith(const Graph& graph, const FusionRule& rule) {
  const RuleCatalog catalog = only(rule);
  FusionReport report = std::move(*fuse(graph, {.switches = everythingAsked(catalog), .rules = &catalog}));
  // The report outlives the catalog above: point at the caller's rule instead.
  for (auto* list : {&report.forward, &report.backward})
    for (FusedOperation& entry : *list)
      if (entry.rule) entry.rule = &rule;
  return report;
}

bool fires(const FusionReport& report) {
  return std::ranges::any_of(report.attempts, [](const Attempt& attempt) { return attempt.outcome == Outcome::Fused; });
}

class RuleConformance : public ::testing::TestWithParam<const FusionRule*> {
 protected:
  const FusionRule& rule() const { return *GetParam(); }
  Graph graphOf(const RuleSample& sample, DType dtype) const {
    return chain(dtype, sample.shape, sample.links, sample.options);
  }
};

TEST_P(RuleConformance, SaysWhatItDoes) {
  EXPECT_FALSE(rule().summary.empty());
  EXPECT_FALSE(rule().becomes.empty());
  for (const Condition& condition : rule().conditions)
    EXPECT_TRUE(condition.sentence.ends_with('.')) << condition.sentence;
}

TEST_P(RuleConformance, FiresOnItsOwnPipelines) {
  const auto samples = ruleSamples(rule().name);
  ASSERT_FALSE(samples.empty()) << "add a pipeline for this rule to tests/support/rule_samples.cpp";
  for (const RuleSample& sample : samples) {
    const Graph graph = graphOf(sample, DType::BF16);
    const FusionReport report = fuseWith(graph, rule());
    EXPECT_TRUE(fires(report)) << sample.label << "\n" << toTree(graph, report);
    const Verdict expands = verifyExpansion(graph, report);
    EXPECT_TRUE(expands) << expands.reason();
  }
}

TEST_P(RuleConformance, EachConditionHasAPipelineThatFailsIt) {
  const auto refusals = refusalSamples(rule().name);
  for (std::size_t index = 0; index < rule().conditions.size(); ++index)
    EXPECT_TRUE(std::ranges::any_of(refusals, [&](const RefusalSample& s) { return s.condition == index; }))
        << "add a pipeline that fails \"" << rule().conditions[index].sentence
        << "\" to tests/support/rule_samples.cpp";
}

const Attempt* refusalIn(const FusionReport& report) {
  const auto found = std::ranges::find(report.attempts, Outcome::ConditionFailed, &Attempt::outcome);
  return found == report.attempts.end() ? nullptr : &*found;
}

std::string idOf(const Link& link, std::size_t position) {
  if (!link.id.empty()) return link.id;
  std::string id = link.operation + std::to_string(position);
  for (char& letter : id) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return id;
}

AttributeValue attributeValue(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  return value.get<std::string>();
}

std::vector<Link> repaired(std::vector<Link> links, const SetAttribute& edit) {
  for (std::size_t i = 0; i < links.size(); ++i)
    if (idOf(links[i], i) == edit.id) links[i].attributes.set(edit.name, attributeValue(edit.value));
  return links;
}

TEST_P(RuleConformance, ARefusalHasASentenceAndItsRepairMakesTheRuleFire) {
  for (const RefusalSample& sample : refusalSamples(rule().name)) {
    const Graph graph = chain(sample.dtype, sample.shape, sample.links, sample.options);
    const FusionReport report = fuseWith(graph, rule());
    const Attempt* refusal = refusalIn(report);
    ASSERT_NE(refusal, nullptr) << rule().conditions[sample.condition].sentence;
    EXPECT_TRUE(refusal->explanation.ends_with('.')) << refusal->explanation;
    if (!rule().conditions[sample.condition].repairs) continue;
    ASSERT_FALSE(refusal->repairs.empty()) << refusal->explanation;
    const auto& edit = std::get<SetAttribute>(refusal->repairs.front().edit);
    const Graph mended = chain(sample.dtype, sample.shape, repaired(sample.links, edit), sample.options);
    EXPECT_TRUE(fires(fuseWith(mended, rule()))) << refusal->repairs.front().label;
  }
}

// The contracts. Expected values are those of the unfused plan, computed in double by the ops' references and rounded
// between steps; tolerances are those of the dtype (te_ops.md 6.1).

struct Tolerance {
  DType dtype;
  double rtol;
};
constexpr Tolerance kTolerances[] = {{DType::F32, 1.3e-6}, {DType::F16, 1e-3}, {DType::BF16, 1.6e-2}};

/// Two roundings are what f16's tolerance allows, bf16's eight. A fused run of several ops rounds less often than the
/// unfused one and may differ by more than two, so that f16 gets eight as well.
double toleranceFor(const RuleSample& sample, const Tolerance& tolerance) {
  return sample.links.size() > 2 && tolerance.dtype == DType::F16 ? 8 * 0x1p-11 : tolerance.rtol;
}

void expectSame(const Graph& graph, const FusionReport& report, const RunResults& expected, double rtol,
                const std::string& label) {
  const RunResults actual = runPlan(graph, report, makeReferenceBackend());
  EXPECT_EQ(firstDifference(actual, expected, rtol), "") << label;
}

TEST_P(RuleConformance, FusedAndUnfusedPassesStandInForEachOther) {
  for (const RuleSample& sample : ruleSamples(rule().name)) {
    for (const Tolerance& tolerance : kTolerances) {
      const Graph graph = graphOf(sample, tolerance.dtype);
      const FusionReport basic = unfused(graph);
      const FusionReport both = fuseWith(graph, rule());
      if (!fires(both)) continue;  // a condition on the dtype
      const RunResults expected = runPlan(graph, basic, makeReferenceBackend());
      const double rtol = toleranceFor(sample, tolerance);
      const std::string label = sample.label + " in " + std::string(dtypeName(tolerance.dtype));
      expectSame(graph, both, expected, rtol, label);
      if (rule().pass == FusionPass::Joint) continue;
      expectSame(graph, {.forward = both.forward, .backward = basic.backward}, expected, rtol,
                 label + ", fused forward");
      expectSame(graph, {.forward = basic.forward, .backward = both.backward}, expected, rtol,
                 label + ", fused backward");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RuleBook, RuleConformance, ::testing::ValuesIn(builtinRules().all()),
                         [](const auto& test) { return test.param->name; });

}  // namespace
}  // namespace fuseline
