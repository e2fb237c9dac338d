// Plans: steps, views, gradient sums, saved tensors, and an arena in which no two live tensors overlap.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include "core/plan/memory_plan.h"
#include "tests/support/attention_layers.h"
#include "tests/support/pipelines.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Plan fusedPlan(const Graph& graph, const RuleSwitches& switches = {}) {
  Result<FusionReport> report = fuse(graph, {.switches = switches});
  EXPECT_TRUE(report);
  return makePlan(graph, *report);
}

const Step* stepOf(const Plan& plan, std::string_view name, Phase phase) {
  const auto found =
      std::ranges::find_if(plan.steps, [&](const Step& s) { return s.name == name && s.phase == phase; });
  return found == plan.steps.end() ? nullptr : &*found;
}

const PlanTensor& tensor(const Plan& plan, std::string_view name) {
  const int index = plan.findTensor(name);
  EXPECT_GE(index, 0) << name;
  return plan.tensors.at(static_cast<std::size_t>(index));
}

TEST(Plan, IdentityIsAViewInBothDirections) {
  const Graph graph = chain(DType::F32, {4, 8}, {link("GELU"), link("Identity", "same"), link("GELU")});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_TRUE(stepOf(plan, "same", Phase::Forward)->isView);
  EXPECT_TRUE(stepOf(plan, "same", Phase::Backward)->isView);
  EXPECT_EQ(plan.numLaunches(), 4);
}

TEST(Plan, AReshapeIsAViewOfAnotherShapeInBothDirections) {
  const Link heads = with(link("Reshape", "heads"), "shape", std::vector<std::int64_t>{4, 2, -1});
  const Graph graph = chain(DType::F32, {4, 8}, {link("GELU"), heads, link("L2Normalization")});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_TRUE(stepOf(plan, "heads", Phase::Forward)->isView);
  EXPECT_TRUE(stepOf(plan, "heads", Phase::Backward)->isView);
  EXPECT_EQ(tensor(plan, "heads:y").spec.shape, (Shape{4, 2, 4}));
  EXPECT_EQ(tensor(plan, "heads:y").storage, tensor(plan, "gelu0:y").storage);
  EXPECT_EQ(tensor(plan, "grad.gelu0:y").spec.shape, (Shape{4, 8}));
  EXPECT_EQ(tensor(plan, "grad.gelu0:y").storage, tensor(plan, "grad.heads:y").storage);
  EXPECT_EQ(plan.numLaunches(), 4);
}

TEST(Plan, AViewKeepsItsSourceAliveUntilItsLastReader) {
  // y of the first GELU lives on in the reshaped branch, past the ops on the main branch.
  const Graph graph = chain(DType::F32, {4, 8},
                            {link("GELU", "act"), with(link("Reshape", "flat"), "shape", std::vector<std::int64_t>{-1}),
                             link("GELU"), link("GELU"), link("AddExtraInput", "add", "flat.y"), link("GELU")},
                            {.pass = ExecutionMode::Inference});
  const Plan plan = makePlan(graph, unfused(graph));
  const int addStep = static_cast<int>(stepOf(plan, "add", Phase::Forward) - plan.steps.data());
  const Storage& storage = plan.storages.at(static_cast<std::size_t>(tensor(plan, "act:y").storage));
  EXPECT_EQ(storage.firstStep, 0);
  EXPECT_EQ(storage.lastStep, addStep);
}

TEST(Plan, CollectivesOfOneRankAreViewsThatSaySo) {
  for (const char* name : {"AllGather", "ReduceScatter", "AllReduce"}) {
    const Graph graph = chain(DType::F32, {4, 8}, {link("GELU"), link(name, "collective")});
    const Plan plan = makePlan(graph, unfused(graph));
    const Step* step = stepOf(plan, "collective", Phase::Forward);
    EXPECT_TRUE(step->isView) << name;
    EXPECT_EQ(step->note, "one rank: nothing to measure") << name;
    EXPECT_NE(toString(plan).find("(one rank: nothing to measure)"), std::string::npos) << name;
    EXPECT_TRUE(stepOf(plan, "collective", Phase::Backward)->isView) << name;
  }
}

TEST(Plan, NotesTheCommunicatorsOfALinear) {
  const Link qkv = with(linear(8, "qkv"), "userbuffers_comm_name", std::string("qkv"));
  const Graph graph = chain(DType::F32, {4, 8}, {qkv, linear(8, "proj")});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_EQ(stepOf(plan, "qkv", Phase::Forward)->note, "runs without Userbuffers overlap");
  EXPECT_EQ(stepOf(plan, "proj", Phase::Forward)->note, "");
  const Graph fused = chain(DType::BF16, {4, 8}, {qkv, link("Bias")});
  EXPECT_EQ(fusedPlan(fused).steps.front().note, "runs without Userbuffers overlap");
}

TEST(Plan, QuantizeWithoutARecipeIsAView) {
  const Graph graph = chain(DType::BF16, {4, 8}, {link("GELU"), link("Quantize", "q"), linear(8)});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_TRUE(stepOf(plan, "q", Phase::Forward)->isView);
  EXPECT_TRUE(stepOf(plan, "q", Phase::Backward)->isView);
}

TEST(Plan, BothOutputsOfMakeExtraOutputShareTheInputsMemory) {
  const Graph graph =
      chain(DType::F32, {4, 8},
            {link("GELU"), link("MakeExtraOutput", "save"), link("GELU"), link("AddExtraInput", "add", "save.extra")});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_EQ(tensor(plan, "save:y").storage, tensor(plan, "gelu0:y").storage);
  EXPECT_EQ(tensor(plan, "save:extra").storage, tensor(plan, "gelu0:y").storage);
}

TEST(Plan, GradientsOfAnAddAreTheOutputGradientItself) {
  const Graph graph = chain(DType::F32, {4, 8}, {link("AddExtraInput", "add")});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_TRUE(stepOf(plan, "add", Phase::Backward)->isView);
  EXPECT_EQ(tensor(plan, "grad.x").storage, tensor(plan, "grad.y").storage);
  EXPECT_EQ(tensor(plan, "grad.add_extra").storage, tensor(plan, "grad.y").storage);
}

TEST(Plan, GradientsOfABranchAreAddedOnce) {
  const Graph graph = chain(DType::F32, {4, 8}, {link("GELU", "act"), link("AddExtraInput", "add", "act.y")});
  const Plan plan = makePlan(graph, unfused(graph));
  const auto isSum = [](const Step& step) { return step.kernel == "accumulate"; };
  ASSERT_EQ(std::ranges::count_if(plan.steps, isSum), 1);
  EXPECT_EQ(std::ranges::find_if(plan.steps, isSum)->operands.size(), 3U);
}

TEST(Plan, GradientsOfLinearOpsAreAddedByTheirGemms) {
  const Graph graph = chain(DType::BF16, {4, 16}, linearsOfOneInput().links);
  const Plan plan = makePlan(graph, unfused(graph));
  std::vector<std::string> sums;
  for (const Step& step : plan.steps)
    for (const StepOperand& operand : step.operands)
      if (step.kernel == "accumulate" || operand.access == OperandAccess::Accumulate)
        sums.push_back(step.name + " " + plan.tensors[static_cast<std::size_t>(operand.tensor)].name);
  EXPECT_EQ(sums, (std::vector<std::string>{"k grad.norm:y", "q grad.norm:y"})) << toString(plan);
}

TEST(Plan, InferenceSavesNothing) {
  const Graph graph =
      chain(DType::BF16, {4, 8}, {link("RMSNorm"), linear(16), link("GELU")}, {.pass = ExecutionMode::Inference});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_EQ(plan.savedForBackwardBytes, 0);
  EXPECT_EQ(plan.findTensor("rmsnorm0:rstd"), -1);
}

TEST(Plan, TrainingCountsWhatBackwardReads) {
  // GELU keeps its input (the linear's output, 4 x 16 bf16); the linear keeps x, which is the pipeline's own.
  const Graph graph = chain(DType::BF16, {4, 8}, {linear(16), link("GELU")});
  EXPECT_EQ(makePlan(graph, unfused(graph)).savedForBackwardBytes, 4 * 16 * 2);
}

TEST(Plan, JointSwiGLULinearDoesNotKeepTheActivation) {
  const Graph graph = chain(DType::BF16, {4, 8}, {linear(64, "fc1"), link("SwiGLU", "act"), linear(8, "fc2")});
  const Plan basic = makePlan(graph, unfused(graph));
  const Plan joint = fusedPlan(graph, {.with = {"ForwardBackwardSwiGLULinear"}});
  EXPECT_EQ(basic.savedForBackwardBytes, 4 * 64 * 2 + 4 * 32 * 2);
  EXPECT_EQ(joint.savedForBackwardBytes, 4 * 64 * 2);
  EXPECT_EQ(joint.findTensor("act:y"), -1);
}

TEST(Plan, AFusedForwardStillMakesWhatAnUnfusedBackwardReads) {
  const Graph graph = chain(DType::BF16, {4, 8}, {linear(16, "fc"), link("Bias", "b"), link("GELU", "act")});
  const Plan plan = fusedPlan(graph);
  EXPECT_GE(plan.findTensor("b:y"), 0);    // the pre-activation
  EXPECT_EQ(plan.findTensor("fc:y"), -1);  // never exists
}

TEST(Plan, NoGradientIsComputedThatNobodyNeeds) {
  const Graph graph = chain(DType::BF16, {4, 8}, {linear(16, "fc")}, {.inputRequiresGradient = false});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_EQ(plan.findTensor("grad.x"), -1);
  EXPECT_GE(plan.findTensor("grad.fc.weight"), 0);
}

/// The computed GEMMs among a linear's three: 2 * 4 * 8 * 16 operations each.
TEST(Plan, CountsTheProductsWhoseGradientsAreWanted) {
  const auto backwardOf = [](const Link& fc, bool isInputWanted) {
    const Graph graph = chain(DType::BF16, {4, 8}, {fc}, {.inputRequiresGradient = isInputWanted});
    return stepOf(makePlan(graph, unfused(graph)), "fc", Phase::Backward)->flops;
  };
  EXPECT_EQ(backwardOf(linear(16, "fc"), true), 2048);
  EXPECT_EQ(backwardOf(linear(16, "fc"), false), 1024);
  EXPECT_EQ(backwardOf(with(linear(16, "fc"), "weight_requires_grad", false), true), 1024);
}

TEST(Plan, AnOpThatReadsAValueTwiceHasTwoGradientsOfIt) {
  const Graph graph = chain(DType::BF16, {4, 8}, {link("GELU", "act"), link("AddExtraInput", "twice", "act.y")});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_GE(plan.findTensor("grad.act:y@twice:x"), 0) << toString(plan);
  EXPECT_GE(plan.findTensor("grad.act:y@twice:extra"), 0) << toString(plan);
  std::set<std::string> names;
  for (const PlanTensor& each : plan.tensors) EXPECT_TRUE(names.insert(each.name).second) << each.name;
}

/// The gradient of the output is the input's.
TEST(Plan, AnInputThatIsOnlyAnOutputHasAGradient) {
  GraphBuilder builder;
  const ValueId x = builder.addInput("x", {DType::F32, {4, 8}});
  builder.addOutput("y", x);
  const Graph graph = std::move(builder).finish(ExecutionMode::Training);
  const Plan plan = makePlan(graph, unfused(graph));
  ASSERT_GE(plan.findTensor("grad.x"), 0);
  EXPECT_EQ(tensor(plan, "grad.x").role, TensorRole::InputGradient);
  EXPECT_EQ(tensor(plan, "grad.x").storage, tensor(plan, "grad.y").storage);
}

TEST(Plan, APipelineOutputThatIsAnInputIsStillNamed) {
  const Graph graph = chain(DType::F32, {4, 8}, {link("Identity")});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_EQ(tensor(plan, "y").storage, tensor(plan, "x").storage);
}

// Delayed weight gradients.

Link experts(const std::string& id, bool isDelayed = true) {
  return with(with(link("GroupedLinear", id), "out_features", std::int64_t{8}), "delay_wgrad_compute", isDelayed);
}

std::vector<std::string> backwardSteps(const Plan& plan) {
  std::vector<std::string> names;
  for (const Step& step : plan.steps)
    if (step.phase == Phase::Backward) names.push_back(step.name);
  return names;
}

std::vector<std::string> namesOf(const Plan& plan, const Step& step, OperandAccess access) {
  std::vector<std::string> names;
  for (const StepOperand& operand : step.operands)
    if (operand.access == access) names.push_back(plan.tensors[static_cast<std::size_t>(operand.tensor)].name);
  return names;
}

TEST(DelayedWeightGradients, AreStepsBehindAllOthersInTheOrderOfBackward) {
  const Graph graph = chain(DType::F32, {6, 8},
                            {link("GELU", "first"), experts("a"), link("GELU", "act"), experts("b"), linear(8, "c")});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_EQ(backwardSteps(plan), (std::vector<std::string>{"c", "b", "act", "a", "first", "b (wgrad)", "a (wgrad)"}));
}

TEST(DelayedWeightGradients, ReadOnlyWhatTheyNeed) {
  const Graph graph = chain(DType::F32, {6, 8}, {experts("a")});
  const Plan plan = makePlan(graph, unfused(graph));
  using Names = std::vector<std::string>;
  const Step& prompt = *stepOf(plan, "a", Phase::Backward);
  EXPECT_EQ(namesOf(plan, prompt, OperandAccess::Read),
            (Names{"a_split_sizes", "a.weight0", "a.weight1", "a.weight2", "grad.y"}));
  EXPECT_EQ(namesOf(plan, prompt, OperandAccess::Write),
            (Names{"grad.x", "grad.a.bias0", "grad.a.bias1", "grad.a.bias2"}));
  const Step& delayed = *stepOf(plan, "a (wgrad)", Phase::Backward);
  EXPECT_EQ(namesOf(plan, delayed, OperandAccess::Read), (Names{"a_split_sizes", "x", "grad.y"}));
  EXPECT_EQ(namesOf(plan, delayed, OperandAccess::Write),
            (Names{"grad.a.weight0", "grad.a.weight1", "grad.a.weight2"}));
}

TEST(DelayedWeightGradients, ShareTheWorkOfTheWholeBackward) {
  // dW: 2 * 6 * 8 * 8 operations, as dx has; db: one for each of the 6 * 8 elements of dy.
  const Graph graph = chain(DType::F32, {6, 8}, {experts("a")});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_EQ(stepOf(plan, "a (wgrad)", Phase::Backward)->flops, 768);
  EXPECT_EQ(stepOf(plan, "a", Phase::Backward)->flops, 768 + 48);
}

TEST(DelayedWeightGradients, KeepWhatTheyReadUntilThen) {
  const auto lifetimes = [&](bool isDelayed) {
    const Graph own = chain(DType::F32, {6, 8}, {link("GELU", "first"), experts("a", isDelayed), link("GELU", "last")});
    const Plan plan = makePlan(own, unfused(own));
    std::vector<int> ends;
    for (const char* name : {"first:y", "grad.a:y"})
      ends.push_back(static_cast<int>(plan.steps.size()) - 1 -
                     plan.storages.at(static_cast<std::size_t>(tensor(plan, name).storage)).lastStep);
    return ends;
  };
  EXPECT_EQ(lifetimes(true), (std::vector<int>{0, 0}));
  EXPECT_EQ(lifetimes(false), (std::vector<int>{1, 1}));  // the first GELU comes later
}

TEST(DelayedWeightGradients, DoNotWaitWhereTheWeightsAreFrozen) {
  const Graph graph = chain(DType::F32, {6, 8}, {with(experts("a"), "weight_requires_grad", false)});
  EXPECT_EQ(backwardSteps(makePlan(graph, unfused(graph))), std::vector<std::string>{"a"});
}

TEST(DelayedWeightGradients, AreTheOnlyStepWhereNothingElseIsNeeded) {
  const Graph graph = chain(DType::F32, {6, 8}, {with(experts("a"), "bias", false)}, {.inputRequiresGradient = false});
  EXPECT_EQ(backwardSteps(makePlan(graph, unfused(graph))), std::vector<std::string>{"a (wgrad)"});
}

TEST(DelayedWeightGradients, ChangeNothingInInference) {
  const auto text = [](bool isDelayed) {
    const Graph graph = chain(DType::F32, {6, 8}, {experts("a", isDelayed)}, {.pass = ExecutionMode::Inference});
    return toString(makePlan(graph, unfused(graph)));
  };
  EXPECT_EQ(text(true), text(false));
}

// Programs.

TEST(Program, AChainKeepsItsIntermediatesInRegisters) {
  const Graph graph = chain(DType::F32, {4, 8}, {link("Bias"), link("GELU")}, {.pass = ExecutionMode::Inference});
  const Plan plan = fusedPlan(graph);
  ASSERT_EQ(plan.steps.size(), 1U);
  const ElementwiseProgram program = composeProgram(graph, plan.steps[0]);
  std::vector<Opcode> opcodes;
  for (const Instruction& instruction : program.code) opcodes.push_back(instruction.opcode);
  EXPECT_EQ(opcodes, (std::vector{Opcode::Load, Opcode::Load, Opcode::Add, Opcode::Gelu}));
  ASSERT_EQ(program.stores.size(), 1U);
  EXPECT_EQ(program.stores[0].place.operand, (OperandKey{1, OperandKind::Output, 0}));
}

TEST(Program, BiasBeforeSwiGLUSumsBothHalvesOfItsGradient) {
  const Graph graph = chain(DType::F32, {4, 8}, {link("Bias"), link("SwiGLU")});
  const Plan plan = fusedPlan(graph);
  const ElementwiseProgram program = composeProgram(graph, plan.steps.back());
  ASSERT_EQ(program.columnSums.size(), 2U);
  EXPECT_EQ(program.columnSums[0].place.lane, 0);
  EXPECT_EQ(program.columnSums[1].place.lane, 1);
  EXPECT_EQ(program.columnSums[1].place.lanes, 2);
}

// Memory.

TEST(Arena, ReusesTheBestFittingBlock) {
  Arena arena;
  const auto large = arena.allocate(1024);
  const auto small = arena.allocate(128);
  arena.allocate(64);
  arena.release(large, 1024);
  arena.release(small, 128);  // coalesces with the large one
  EXPECT_EQ(arena.allocate(1152), 0);
  EXPECT_EQ(arena.sizeBytes(), 1024 + 128 + 64);
}

bool overlap(const Storage& a, const Storage& b) {
  const bool inTime = a.firstStep <= b.lastStep && b.firstStep <= a.lastStep;
  const bool inSpace = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  return inTime && inSpace;
}

/// Two storages may meet in one step only if the step is elementwise and hands the one over to the other.
bool isFusedOperand(const Plan& plan, const Storage& a, const Storage& b) {
  const Storage& earlier = a.firstStep < b.firstStep ? a : b;
  const Storage& later = a.firstStep < b.firstStep ? b : a;
  const std::string& kernel = plan.steps[static_cast<std::size_t>(later.firstStep)].kernel;
  return earlier.lastStep == later.firstStep && earlier.offset == later.offset && earlier.bytes == later.bytes &&
         (kernel == "elementwise" || kernel == "accumulate");
}

std::vector<Link> anyLinks() {
  const std::vector<Link> kinds = {
      link("GELU"),
      link("Bias"),
      link("RMSNorm"),
      linear(16),
      link("Identity"),
      link("AddExtraInput"),
      link("MakeExtraOutput"),
      link("ConstantScale"),
      with(link("GELU"), "cpu_offloading", true),
      with(link("RMSNorm"), "cpu_offloading", true),
      with(linear(16), "cpu_offloading", true),
      with(link("GroupedLinear"), "out_features", std::int64_t{16}),
      with(with(link("GroupedLinear"), "out_features", std::int64_t{16}), "delay_wgrad_compute", true)};
  std::vector<Link> links;
  for (const auto index : *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, kinds.size())))
    links.push_back(kinds[index]);
  return links;
}

TEST(Plan, LiveTensorsNeverOverlap) {
  EXPECT_TRUE(rc::check("no two live storages share memory", [] {
    const Graph graph = chain(DType::F32, {4, 16}, anyLinks());
    for (const Plan& plan : {makePlan(graph, unfused(graph)), fusedPlan(graph)}) {
      for (std::size_t i = 0; i < plan.storages.size(); ++i)
        for (std::size_t j = i + 1; j < plan.storages.size(); ++j) {
          const Storage& a = plan.storages[i];
          const Storage& b = plan.storages[j];
          if (a.isPersistent || b.isPersistent || a.isOnHost || b.isOnHost || a.bytes == 0 || b.bytes == 0) continue;
          RC_ASSERT(!overlap(a, b) || isFusedOperand(plan, a, b));
        }
    }
  }));
}

TEST(Plan, EveryOperandIsWrittenBeforeItIsRead) {
  EXPECT_TRUE(rc::check("reads follow writes", [] {
    const Graph graph = chain(DType::F32, {4, 16}, anyLinks());
    const Plan plan = fusedPlan(graph);
    std::vector<bool> isWritten(plan.storages.size(), false);
    for (const PlanTensor& t : plan.tensors)
      if (t.role == TensorRole::Input || t.role == TensorRole::Parameter || t.role == TensorRole::OutputGradient)
        isWritten[static_cast<std::size_t>(t.storage)] = true;
    for (const Step& step : plan.steps) {
      for (const StepOperand& operand : step.operands) {
        const auto storage = static_cast<std::size_t>(plan.tensors[static_cast<std::size_t>(operand.tensor)].storage);
        if (operand.access == OperandAccess::Read)
          RC_ASSERT(isWritten[storage]);
        else
          isWritten[storage] = true;
      }
    }
  }));
}

}  // namespace
}  // namespace fuseline
