// Every rule of the rule set: it fires on its own pipelines, each condition refuses with its sentence and its repair
// makes it fire, and fused and unfused passes are interchangeable.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/sharding/rank_graph.h"
#include "tests/support/handed_codes.h"
#include "tests/support/pipelines.h"
#include "tests/support/rule_samples.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// A rule set with one rule only, so that no other fusion is in the way.
RuleCatalog only(const FusionRule& rule) {
  RuleCatalog catalog;
  EXPECT_TRUE(catalog.registerFusion(rule));
  return catalog;
}

FusionReport fuseWith(const Graph& graph, const FusionRule& rule, const FusionTarget& target) {
  const RuleCatalog catalog = only(rule);
  const FusionOptions options{.switches = everythingAsked(catalog), .rules = &catalog, .target = target};
  FusionReport report = std::move(*fuse(graph, options));
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
  template <class Sample>
  FusionReport fuseSample(const Graph& graph, const Sample& sample) const {
    FusionTarget target = sample.target;
    if (!target.recipe) target.recipe = recipeOf(sample.options);
    return fuseWith(graph, rule(), target);
  }
  FusionReport fuseSample(const RefusalSample& sample) const {
    const Graph whole = chain(sample.dtype, sample.shape, sample.links, sample.options);
    return fuseSample(sample.ranks > 1 ? rankGraph(whole, 0, sample.ranks)->graph : whole, sample);
  }
};

/// The reason comes first: its saving, or what one kernel computes. Requirements and differences to TransformerEngine
/// follow.
TEST_P(RuleConformance, BeginsWithItsReason) {
  const std::string reason = rule().summary.substr(0, rule().summary.find(". "));
  EXPECT_LE(reason.size(), 200u) << reason;
  for (const char* opening : {"Under ", "If ", "With ", "Without ", "Unlike ", "TransformerEngine ", "This rule "})
    EXPECT_FALSE(reason.starts_with(opening)) << reason;
  EXPECT_FALSE(reason.starts_with(rule().name)) << reason;
}

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
    const FusionReport report = fuseSample(graph, sample);
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
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::string>();
}

Link* linkOf(RefusalSample& sample, const std::string& id) {
  for (std::size_t i = 0; i < sample.links.size(); ++i)
    if (idOf(sample.links[i], i) == id) return &sample.links[i];
  ADD_FAILURE() << "the repair is for " << id << ", which the pipeline does not have";
  return nullptr;
}

/// Applies repairs to a sample, whose first extra input is the only one that can be rewired.
struct Mender {
  RefusalSample& sample;

  void operator()(const SetAttribute& edit) {
    if (Link* link = linkOf(sample, edit.id)) link->attributes.set(edit.name, attributeValue(edit.value));
  }
  void operator()(const SetRecipe& edit) {
    const Result<Recipe> recipe = recipeFromJson(edit.recipe);
    ASSERT_TRUE(recipe) << recipe.error().message;
    sample.options.recipe = recipe->name();
    sample.options.recipeFields = recipe->fields();
  }
  void operator()(const RemoveWire& edit) {
    if (Link* link = linkOf(sample, edit.wire.to.node)) link->extraFrom.clear();
  }
  void operator()(const AddWire& edit) {
    if (Link* link = linkOf(sample, edit.wire.to.node)) link->extraFrom = toString(edit.wire.from);
  }
  void operator()(const EditGroup& group) {
    for (const Edit& edit : group.edits) std::visit(*this, edit);
  }
  void operator()(const auto&) { ADD_FAILURE() << "a kind of repair that this test cannot apply"; }
};

RefusalSample mended(RefusalSample sample, const Repair& repair) {
  std::visit(Mender{sample}, repair.edit);
  return sample;
}

TEST_P(RuleConformance, ARefusalHasASentenceAndItsRepairMakesTheRuleFire) {
  for (const RefusalSample& sample : refusalSamples(rule().name)) {
    const FusionReport report = fuseSample(sample);
    const Attempt* refusal = refusalIn(report);
    ASSERT_NE(refusal, nullptr) << rule().conditions[sample.condition].sentence;
    EXPECT_TRUE(refusal->explanation.ends_with('.')) << refusal->explanation;
    if (!rule().conditions[sample.condition].repairs) continue;
    ASSERT_FALSE(refusal->repairs.empty()) << refusal->explanation;
    EXPECT_TRUE(fires(fuseSample(mended(sample, refusal->repairs.front())))) << refusal->repairs.front().label;
  }
}

// The contracts. Expected values are those of the unfused plan, computed in double by the ops' references and rounded
// between steps; tolerances are those of the dtype.

struct Tolerance {
  DType dtype;
  double rtol;
};
constexpr Tolerance kTolerances[] = {{DType::F32, 1.3e-6}, {DType::F16, 1e-3}, {DType::BF16, 1.6e-2}};

/// f16's tolerance allows two roundings, bf16's eight. A fused run of several ops rounds less often than the unfused
/// one and may differ by more than two, so f16 gets eight as well. A GEMM after another GEMM multiplies values that
/// were already rounded.
double toleranceFor(const RuleSample& sample, const Tolerance& tolerance) {
  const auto numProducts = std::ranges::count(sample.links, "GroupedLinear", &Link::operation);
  const double rtol = sample.links.size() > 2 && tolerance.dtype == DType::F16 ? 8 * 0x1p-11 : tolerance.rtol;
  return rtol * static_cast<double>(std::max<std::ptrdiff_t>(1, numProducts));
}

/// The reference quantizes tensors in memory. Rules with quantization inside the kernel are compared in high precision.
RuleSample comparable(const FusionRule& rule, RuleSample sample) {
  if (rule.quantizesInside) sample.target.recipe = recipeOf(std::exchange(sample.options, {}));
  return sample;
}

void expectSame(const Graph& graph, const FusionReport& report, const RunResults& expected, double rtol,
                const std::string& label) {
  const RunResults actual = runPlan(graph, report, makeReferenceBackend());
  EXPECT_EQ(quantizesUnrounded(graph, report) ? differenceOfNextCodes(actual, expected)
                                              : firstDifference(actual, expected, rtol),
            "")
      << label;
}

TEST_P(RuleConformance, FusedAndUnfusedPassesStandInForEachOther) {
  for (const RuleSample& own : ruleSamples(rule().name)) {
    const RuleSample sample = comparable(rule(), own);
    for (const Tolerance& tolerance : kTolerances) {
      const Graph graph = graphOf(sample, tolerance.dtype);
      const FusionReport basic = unfused(graph);
      const FusionReport both = fuseSample(graph, sample);
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
