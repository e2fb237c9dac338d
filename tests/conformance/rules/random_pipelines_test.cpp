// Properties of whole pipelines: whatever is generated fuses to a plan that expands to itself and computes the same.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "tests/support/pipelines.h"
#include "tests/support/rule_samples.h"
#include "tests/support/run_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// What a random pipeline is made of: kinds of ops, branches that later adds may read, frozen inputs, switched-off
/// rules.
struct RandomPipeline {
  std::vector<Link> links;
  ChainOptions options;
  RuleSwitches switches = everythingAsked(builtinRules());
};

std::string extraSource(const std::vector<std::string>& branches) {
  const auto choice = *rc::gen::inRange<std::size_t>(0, branches.size() + 1);
  return choice < branches.size() ? branches[choice] : "";
}

Link randomAdd(const std::string& id, const std::vector<std::string>& branches) {
  const Link add = inPlace(link("AddExtraInput", id, extraSource(branches)), *rc::gen::arbitrary<bool>());
  return *rc::gen::arbitrary<bool>() ? swapped(add) : add;
}

/// Half of them have a bias and a run of elementwise ops, which a linear takes into its step.
std::vector<Link> randomLinear(const std::string& id, std::vector<std::string>& branches) {
  std::vector<Link> links{linear(16, id)};
  if (*rc::gen::arbitrary<bool>()) return links;
  links.push_back(link("Bias", id + "_bias"));
  const int numOps = *rc::gen::inRange(0, 4);
  for (int i = 0; i < numOps; ++i) {
    static const std::vector<std::string> kKinds = {"GELU", "SReLU", "Dropout", "ConstantScale", "Formula"};
    const std::string own = id + "_" + std::to_string(i);
    const bool isAdd = *rc::gen::inRange(0, 3) == 0;
    links.push_back(isAdd ? randomAdd(own, branches) : link(*rc::gen::elementOf(kKinds), own));
  }
  return links;
}

std::vector<Link> randomLinks(int position, std::vector<std::string>& branches) {
  static const std::vector<std::string> kKinds = {
      "GELU",    "Bias",     "RMSNorm",       "LayerNorm",       "BasicLinear",
      "SwiGLU",  "Identity", "AddExtraInput", "MakeExtraOutput", "ConstantScale",
      "Dropout", "SReLU",    "GEGLU",         "Formula"};
  const std::string kind = *rc::gen::elementOf(kKinds);
  const std::string id = "op" + std::to_string(position);
  if (kind == "BasicLinear") return randomLinear(id, branches);
  if (kind == "AddExtraInput") return {randomAdd(id, branches)};
  if (kind == "MakeExtraOutput") {
    branches.push_back(id + ".extra");
    return {inPlace(link(kind, id), *rc::gen::arbitrary<bool>())};
  }
  if (*rc::gen::inRange(0, 4) == 0) branches.push_back(id + ".y");  // a plain fan-out
  return {link(kind, id)};
}

/// Gated ops halve the width; a linear in front, some with a bias, keeps every tensor 16 wide: branches always fit.
std::vector<Link> withWidths(std::vector<Link> links) {
  std::vector<Link> result;
  for (Link& item : links) {
    if (item.operation.ends_with("GLU")) {
      result.push_back(linear(32, item.id + "_wide"));
      if (*rc::gen::arbitrary<bool>()) result.push_back(link("Bias", item.id + "_wide_bias"));
    }
    result.push_back(std::move(item));
  }
  return result;
}

RandomPipeline randomPipeline() {
  RandomPipeline pipeline;
  std::vector<std::string> branches;
  const int numOps = *rc::gen::inRange(1, 12);
  for (int i = 0; i < numOps; ++i)
    for (Link& item : randomLinks(i, branches)) pipeline.links.push_back(std::move(item));
  pipeline.links = withWidths(std::move(pipeline.links));
  pipeline.options.inputRequiresGradient = *rc::gen::arbitrary<bool>();
  for (const std::string& branch : branches)
    if (*rc::gen::inRange(0, 3) == 0) pipeline.options.extraOutputs.push_back(branch);
  for (const FusionRule* rule : builtinRules().all())
    if (*rc::gen::inRange(0, 4) == 0) pipeline.switches.without.push_back(rule->name);
  return pipeline;
}

void checkPipeline(DType dtype, double rtol) {
  const RandomPipeline pipeline = randomPipeline();
  const Graph graph = chain(dtype, {5, 16}, pipeline.links, pipeline.options);
  RC_LOG() << toString(graph);
  const FusionReport report = std::move(*fuse(graph, {.switches = pipeline.switches}));
  RC_LOG() << toTree(graph, report);
  const Verdict expands = verifyExpansion(graph, report);
  RC_ASSERT(expands.reason() == "");
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  const RunResults actual = runPlan(graph, report, makeReferenceBackend());
  RC_ASSERT(firstDifference(actual, expected, rtol) == "");
}

TEST(RandomPipelines, FuseToAPlanThatComputesTheSameInFloat32) {
  // Twelve ops deep, roundings of 6e-8 grow; a wrong gradient differs by its own size.
  EXPECT_TRUE(rc::check("fused equals unfused", [] { checkPipeline(DType::F32, 1e-4); }));
}

TEST(RandomPipelines, FuseToTheSameReportTwice) {
  EXPECT_TRUE(rc::check("fusing is deterministic", [] {
    const RandomPipeline pipeline = randomPipeline();
    const Graph graph = chain(DType::BF16, {5, 16}, pipeline.links, pipeline.options);
    const FusionOptions options{.switches = pipeline.switches};
    RC_ASSERT(toJson(graph, *fuse(graph, options)) == toJson(graph, *fuse(graph, options)));
  }));
}

}  // namespace
}  // namespace fuseline
