// The fuser: the resulting entries, and the sentence of a refusal.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"

#include "core/fusion/step_operands.h"
#include "tests/support/pipelines.h"

#include <gmock/gmock.h>
#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;
using Names = std::vector<std::string>;

const Attempt* searchedAttempt(const FusionReport& report, const FusedOperation& entry) {
  const auto found = std::ranges::find_if(report.attempts, [&](const Attempt& attempt) {
    return attempt.outcome == Outcome::Fused && attempt.rule == entry.rule && attempt.nodes == entry.nodes;
  });
  return found == report.attempts.end() ? nullptr : &*found;
}

FusionReport fused(const Graph& graph, const FusionOptions& options = {}) {
  Result<FusionReport> report = fuse(graph, options);
  EXPECT_TRUE(report) << (report ? "" : report.error().message);
  const Verdict expands = verifyExpansion(graph, *report);
  EXPECT_TRUE(expands) << expands.reason();
  for (const auto* list : {&report->forward, &report->backward})
    for (const FusedOperation& entry : *list) EXPECT_EQ(attemptBehind(*report, entry), searchedAttempt(*report, entry));
  return std::move(*report);
}

Names names(const Graph& graph, const std::vector<FusedOperation>& list) {
  Names result;
  for (const FusedOperation& entry : list) result.push_back(entry.name(graph));
  return result;
}

const Attempt* attemptOf(const FusionReport& report, std::string_view rule) {
  for (const Attempt& attempt : report.attempts)
    if (attempt.rule->name == rule) return &attempt;
  return nullptr;
}

const FusionOptions kTe{.book = RuleBook::Te};

// Fusions of TransformerEngine's tests (tests/pytorch/test_fusible_ops.py) and of its ready-made modules.

TEST(FuserTe, LayerNormMlpFusesOnlyTheBiases) {
  const Graph graph = chain(DType::BF16, {8, 16},
                            {link("LayerNorm"), linear(64), link("Bias"), link("SwiGLU"), linear(16), link("Bias")});
  const FusionReport report = fused(graph, kTe);
  EXPECT_EQ(names(graph, report.forward),
            (Names{"LayerNorm", "ForwardLinearBiasActivation", "SwiGLU", "ForwardLinearBiasActivation"}));
  EXPECT_EQ(names(graph, report.backward),
            (Names{"LayerNorm", "BasicLinear", "Bias", "SwiGLU", "BasicLinear", "Bias"}));
}

TEST(FuserTe, MakeExtraOutputInPlaceBeforeLinearFusesBackward) {
  const Graph graph = chain(DType::BF16, {8, 16}, {inPlace(link("MakeExtraOutput", "save")), linear(16)},
                            {.extraOutputs = {"save.extra"}});
  const FusionReport report = fused(graph, kTe);
  EXPECT_EQ(names(graph, report.forward), (Names{"MakeExtraOutput", "BasicLinear"}));
  EXPECT_EQ(names(graph, report.backward), (Names{"BackwardLinearAdd"}));
}

TEST(FuserTe, MakeExtraOutputBeforeRMSNormFusesBackward) {
  const Graph graph = chain(DType::BF16, {8, 16}, {link("MakeExtraOutput"), link("RMSNorm"), linear(16), link("Bias")});
  const FusionReport report = fused(graph, kTe);
  EXPECT_EQ(names(graph, report.forward), (Names{"MakeExtraOutput", "RMSNorm", "ForwardLinearBiasActivation"}));
  EXPECT_EQ(names(graph, report.backward), (Names{"BackwardAddRMSNorm", "BasicLinear", "Bias"}));
}

TEST(FuserTe, LinearBiasAddInPlaceIsOneEntry) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16), link("Bias"), inPlace(link("AddExtraInput"))});
  const FusionReport report = fused(graph, kTe);
  EXPECT_EQ(names(graph, report.forward), Names{"ForwardLinearBiasAdd"});
  EXPECT_EQ(names(graph, report.backward), (Names{"BasicLinear", "Bias", "AddExtraInput"}));
}

TEST(FuserTe, LinearAddInPlaceWithoutBiasIsTheSameFusion) {
  const Graph graph = chain(DType::F32, {8, 16}, {linear(16), inPlace(link("AddExtraInput"))});
  EXPECT_EQ(names(graph, fused(graph, kTe).forward), Names{"ForwardLinearBiasAdd"});
}

TEST(FuserTe, LinearScaleAddInPlaceIsOneEntryEachWay) {
  for (const DType dtype : {DType::BF16, DType::F32}) {
    const Graph graph = chain(dtype, {8, 16}, {linear(16), link("ConstantScale"), inPlace(link("AddExtraInput"))});
    const FusionReport report = fused(graph, kTe);
    EXPECT_EQ(names(graph, report.forward), Names{"ForwardLinearScaleAdd"});
    EXPECT_EQ(names(graph, report.backward), (Names{"BackwardLinearScale", "AddExtraInput"}));
  }
}

TEST(FuserTe, Float32WeightsKeepTheBiasSeparate) {
  const Graph graph = chain(DType::F32, {8, 16}, {linear(16, "fc"), link("Bias")});
  const FusionReport report = fused(graph, kTe);
  EXPECT_EQ(names(graph, report.forward), (Names{"BasicLinear", "Bias"}));
  const Attempt* attempt = attemptOf(report, "ForwardLinearBiasActivation");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::ConditionFailed);
  EXPECT_EQ(attempt->explanation,
            "fc has an f32 weight, but TransformerEngine fuses the bias only into GEMMs with 16-bit weights.");
  ASSERT_EQ(attempt->repairs.size(), 1U);
  EXPECT_EQ(attempt->repairs.front().label, "Set fc.dtype to \"bf16\"");
}

TEST(FuserTe, ARecipeThatQuantizesGradientsFusesBiasAndActivationBackward) {
  const std::vector<Link> links = {linear(32, "fc1"), link("Bias", "bias"), link("GELU", "act"), linear(16, "fc2")};
  const Graph graph = chain(DType::BF16, {16, 16}, links, {.recipe = "Float8CurrentScaling"});
  const FusionReport report = fused(graph, kTe);
  EXPECT_EQ(names(graph, report.forward), (Names{"ForwardLinearBiasActivation", "GELU", "BasicLinear"}));
  EXPECT_EQ(names(graph, report.backward), (Names{"BasicLinear", "BackwardActivationBias", "BasicLinear"}));
  const Graph plain = chain(DType::BF16, {16, 16}, links);
  const FusionReport without = fused(plain, kTe);
  EXPECT_EQ(names(plain, without.backward), (Names{"BasicLinear", "Bias", "GELU", "BasicLinear"}));
  EXPECT_EQ(attemptOf(without, "BackwardActivationBias")->explanation,
            "fc1 (BasicLinear), upstream of bias, does not quantize its output gradient. TransformerEngine fuses these "
            "ops only under a recipe that quantizes gradients.");
  // A tensor with other consumers ends its te.ops.Sequential.
  const Graph branch =
      chain(DType::BF16, {16, 16}, links, {.extraOutputs = {"fc1.y"}, .recipe = "Float8CurrentScaling"});
  EXPECT_EQ(names(branch, fused(branch, kTe).backward), (Names{"BasicLinear", "Bias", "GELU", "BasicLinear"}));
}

/// SwiGLU is not among the activations that TransformerEngine fuses.
TEST(FuserTe, UnderMxfp8LayerNormMlpHasSixBackwardEntries) {
  const Graph graph = chain(DType::BF16, {32, 32},
                            {link("LayerNorm"), linear(64), link("Bias"), link("SwiGLU"), linear(32), link("Bias")},
                            {.recipe = "MXFP8BlockScaling"});
  EXPECT_EQ(names(graph, fused(graph, kTe).backward),
            (Names{"LayerNorm", "BasicLinear", "Bias", "SwiGLU", "BasicLinear", "Bias"}));
}

// Tensor parallelism.

const FusionTarget kTwoRanks{.capability = ComputeCapability{9, 0}, .ranks = 2};

Link userbuffers(Link link, const std::string& mode, bool isSequenceParallel = true) {
  link = with(std::move(link), "userbuffers_comm_name", std::string("fc"));
  return with(with(std::move(link), "tensor_parallel_mode", mode), "sequence_parallel", isSequenceParallel);
}

TEST(FuserTe, UserbuffersTakeTheLinearsOfSeveralRanksWithWhatCommunicates) {
  const Graph graph = chain(DType::BF16, {8, 16},
                            {userbuffers(linear(16), "column"), link("Bias"), link("GELU"),
                             userbuffers(linear(16), "none"), link("Bias"), link("ReduceScatter")});
  const FusionReport report = fused(graph, {.book = RuleBook::Te, .target = kTwoRanks});
  EXPECT_EQ(names(graph, report.forward), (Names{"UserbuffersForwardLinear", "GELU", "UserbuffersForwardLinear"}));
  EXPECT_EQ(names(graph, report.backward), (Names{"UserbuffersBackwardLinear", "GELU", "UserbuffersBackwardLinear"}));
  EXPECT_EQ(report.forward.back().nodes.size(), 3U);
}

TEST(FuserTe, UserbuffersLeaveTheBiasOfARowParallelLinearAndTheCollectiveOfAParallelOne) {
  for (const auto& [mode, next] : {std::pair{"row", "Bias"}, {"row", "ReduceScatter"}, {"column", "ReduceScatter"}}) {
    const Graph graph = chain(DType::BF16, {8, 16}, {userbuffers(linear(16), mode), link(next)});
    const FusionReport report = fused(graph, {.book = RuleBook::Te, .target = kTwoRanks});
    EXPECT_EQ(names(graph, report.forward), (Names{"UserbuffersForwardLinear", next})) << mode;
    EXPECT_EQ(names(graph, report.backward), (Names{"UserbuffersBackwardLinear", next})) << mode;
  }
}

TEST(FuserTe, OneRankHasNothingToOverlap) {
  const Graph graph = chain(DType::BF16, {8, 16}, {userbuffers(linear(16, "fc"), "column"), link("Bias")});
  const FusionReport report = fused(graph, kTe);
  EXPECT_EQ(names(graph, report.forward), Names{"ForwardLinearBiasActivation"});
  for (const char* rule : {"UserbuffersForwardLinear", "UserbuffersBackwardLinear"}) {
    ASSERT_NE(attemptOf(report, rule), nullptr);
    EXPECT_EQ(
        attemptOf(report, rule)->explanation,
        "The group has 1 rank, so fc has no communication to overlap. Use `fuse --ranks N` to plan for more ranks.");
  }
}

TEST(FuserTe, NobodySpeaksOfUserbuffersWhereALinearNamesNone) {
  const Graph graph = chain(DType::BF16, {8, 16}, {with(linear(16), "tensor_parallel_mode", std::string("column"))});
  EXPECT_EQ(attemptOf(fused(graph, {.target = kTwoRanks}), "UserbuffersForwardLinear"), nullptr);
}

/// The rule's message about the first of these links.
std::string userbuffersRefusal(const std::vector<Link>& links, const ChainOptions& options = {},
                               FusionTarget target = kTwoRanks, const char* rule = "UserbuffersForwardLinear") {
  target.recipe = recipeOf(options);
  const Graph graph = chain(DType::BF16, {16, 16}, links, options);
  const FusionReport report = fused(graph, {.book = RuleBook::Te, .target = target});
  const Attempt* attempt = attemptOf(report, rule);
  return attempt ? attempt->explanation : "no attempt";
}

TEST(FuserTe, UserbuffersSayWhatIsInTheirWay) {
  EXPECT_EQ(
      userbuffersRefusal({userbuffers(linear(16, "fc"), "none")}),
      "fc has tensor_parallel_mode none and no ReduceScatter follows it, so there is no communication to overlap.");
  EXPECT_EQ(
      userbuffersRefusal({userbuffers(linear(16, "fc"), "row", false)}),
      "fc is row-parallel with sequence_parallel off, which TransformerEngine's Userbuffers refuse with an error.");
  EXPECT_EQ(userbuffersRefusal({userbuffers(linear(16, "fc"), "row")}, {.recipe = "NVFP4BlockScaling"}),
            "The recipe is NVFP4BlockScaling, but UserbuffersForwardLinear needs Float8CurrentScaling or "
            "DelayedScaling or MXFP8BlockScaling.");
  EXPECT_EQ(userbuffersRefusal({userbuffers(linear(16, "fc"), "row")}, {}, {.ranks = 2}),
            "UserbuffersForwardLinear needs a GPU of compute capability 8.0 (sm_80) or newer, but the device is no "
            "GPU.");
}

/// TransformerEngine's backward matcher does not ask for it, which this rule does.
TEST(FuserTe, BothPassesOfUserbuffersHonourABackwardOverride) {
  Attributes dequantized;
  dequantized.set("backward_override", std::string("dequantized"));
  for (const char* rule : {"UserbuffersForwardLinear", "UserbuffersBackwardLinear"})
    EXPECT_EQ(userbuffersRefusal({userbuffers(linear(16, "fc"), "column")},
                                 {.recipe = "Float8CurrentScaling", .recipeFields = dequantized}, kTwoRanks, rule),
              "Float8CurrentScaling has backward_override dequantized; Userbuffers support no backward override.");
}

TEST(Fuser, AnOpThatNamesUserbuffersAsksForThem) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {userbuffers(linear(16), "column"), link("Bias"), link("GELU"), link("Dropout")});
  const FusionReport report = fused(graph, {.target = kTwoRanks});
  EXPECT_EQ(names(graph, report.forward), (Names{"UserbuffersForwardLinear", "ForwardElementwiseChain"}));
}

TEST(Fuser, AnEntryForSeveralRanksDoesNotSpeakOfOne) {
  const Graph graph = chain(DType::BF16, {8, 16}, {userbuffers(linear(16), "column")});
  EXPECT_EQ(fused(graph).forward.front().note(graph), "runs without Userbuffers overlap");
  EXPECT_EQ(fused(graph, {.target = kTwoRanks}).forward.front().note(graph), "");
}

// Grouped MLPs.

Link grouped(std::int64_t outFeatures, const std::string& id, const std::string& splitSizes) {
  return with(link("GroupedLinear", id, splitSizes), "out_features", outFeatures);
}

/// Two grouped linears of 128 rows around an activation.
struct GroupedMlp {
  Link activation = with(link("ScaledSwiGLU", "act"), "glu_interleave_size", std::int64_t{32});
  std::string recipe = "MXFP8BlockScaling";
  Attributes fields;
  ExecutionMode pass = ExecutionMode::Training;
  std::optional<ComputeCapability> capability = ComputeCapability{10, 0};
  std::int64_t rows = 128;
  std::int64_t hidden = 128;
  std::string splitSizes = "fc1_split_sizes";  // of the second linear

  Graph graph() const {
    return chain(DType::BF16, {rows, 64}, {grouped(hidden, "fc1", ""), activation, grouped(64, "fc2", splitSizes)},
                 {.pass = pass, .recipe = recipe, .recipeFields = fields});
  }
  FusionReport report(const Graph& graph) const {
    const FusionTarget target{.recipe = recipeOf({.recipe = recipe, .recipeFields = fields}), .capability = capability};
    return fused(graph, {.book = RuleBook::Te, .target = target});
  }
  std::string refusal() const {
    const Graph own = graph();
    const FusionReport made = report(own);
    return attemptOf(made, "GroupedMLP_CuTeGEMMGLU")->explanation;
  }
};

TEST(FuserTe, AGroupedMlpIsOneEntryEachWayOnBlackwell) {
  for (const char* recipe : {"MXFP8BlockScaling", "NVFP4BlockScaling"}) {
    const GroupedMlp mlp{.recipe = recipe};
    const Graph graph = mlp.graph();
    EXPECT_EQ(names(graph, mlp.report(graph).forward), Names{"GroupedMLP_CuTeGEMMGLU"});
    EXPECT_EQ(names(graph, mlp.report(graph).backward), Names{"GroupedMLP_CuTeGEMMGLU"});
  }
  for (const char* activation : {"ScaledSReLU", "ScaledTanhSReLU"}) {
    const GroupedMlp unary{.activation = link(activation), .hidden = 64};
    const Graph graph = unary.graph();
    EXPECT_EQ(names(graph, unary.report(graph).backward), Names{"GroupedMLP_CuTeGEMMUnary"}) << activation;
  }
}

/// TransformerEngine's OperationFuser applies joint fusions whether or not gradients are enabled.
TEST(FuserTe, AGroupedMlpIsOneEntryInInference) {
  const GroupedMlp mlp{.pass = ExecutionMode::Inference};
  const Graph graph = mlp.graph();
  const FusionReport report = mlp.report(graph);
  EXPECT_EQ(names(graph, report.forward), Names{"GroupedMLP_CuTeGEMMGLU"});
  EXPECT_TRUE(report.backward.empty());
}

/// Also for a frozen part: the forward list is fused, and nothing runs backward.
TEST(FuserTe, AGroupedMlpWithoutGradientsIsFusedForward) {
  std::vector<Link> links = {grouped(128, "fc1", ""), GroupedMlp{}.activation, grouped(64, "fc2", "fc1_split_sizes")};
  for (Link& link : links)
    if (link.operation == "GroupedLinear") link = with(with(link, "weight_requires_grad", false), "bias", false);
  const Graph graph =
      chain(DType::BF16, {128, 64}, links, {.inputRequiresGradient = false, .recipe = "MXFP8BlockScaling"});
  const FusionReport report = GroupedMlp{}.report(graph);
  EXPECT_EQ(names(graph, report.forward), Names{"GroupedMLP_CuTeGEMMGLU"});
}

/// fuse_grouped_mlp_ops() declines E5M2 gradients.
TEST(FuserTe, AGroupedMlpUnderMxfp8Takes8BitGradientsOfE4m3Only) {
  Attributes hybrid;
  hybrid.set("fp8_format", std::string("HYBRID"));
  EXPECT_EQ(GroupedMlp{.fields = hybrid}.refusal(),
            "MXFP8BlockScaling has fp8_format HYBRID; the kernels read all gradients as E4M3.");
}

TEST(FuserTe, AGroupedMlpNamesTheVariableThatTransformerEngineNeeds) {
  const GroupedMlp mlp;
  const Graph graph = mlp.graph();
  const FusionReport report = mlp.report(graph);
  EXPECT_EQ(attemptOf(report, "GroupedMLP_CuTeGEMMGLU")->explanation,
            "fc1, act, fc2 are fused; in TransformerEngine only with NVTE_CUTEDSL_FUSED_GROUPED_MLP=1.");
  EXPECT_NE(planTree(graph, report).find("NVTE_CUTEDSL_FUSED_GROUPED_MLP=1"), std::string::npos);
}

/// grouped_mlp.py, fuse_glu_ops(): compute capability 10.7 has kernels for two of the three gated activations.
TEST(FuserTe, RubinHasNoGroupedMlpWithSiTU) {
  const Link situ = with(link("ScaledSiTUGLU", "act"), "glu_interleave_size", std::int64_t{32});
  EXPECT_EQ((GroupedMlp{.activation = situ, .capability = ComputeCapability{10, 7}}.refusal()),
            "act is ScaledSiTUGLU, which has no kernel on GPUs of compute capability 10.7 (sm_107) or newer.");
  for (const auto& [activation, minor] : {std::pair(situ, 3), std::pair(GroupedMlp{}.activation, 7)}) {
    const GroupedMlp mlp{.activation = activation, .capability = ComputeCapability{10, minor}};
    const Graph graph = mlp.graph();
    EXPECT_EQ(names(graph, mlp.report(graph).forward), Names{"GroupedMLP_CuTeGEMMGLU"});
  }
}

/// The lists are built whether or not an op needs a gradient; those before the first that does are not run.
TEST(FuserTe, AnOpWithoutGradientMayBeginAFusion) {
  const std::vector<Link> links = {inPlace(link("MakeExtraOutput", "save")), linear(16), link("ConstantScale")};
  const Graph graph =
      chain(DType::BF16, {8, 16}, links, {.inputRequiresGradient = false, .extraOutputs = {"save.extra"}});
  EXPECT_EQ(names(graph, fused(graph, kTe).backward), (Names{"BackwardLinearAdd", "ConstantScale"}));
  const Graph norm = chain(DType::BF16, {8, 16}, {link("MakeExtraOutput", "save"), link("RMSNorm")},
                           {.inputRequiresGradient = false, .extraOutputs = {"save.extra"}});
  EXPECT_EQ(names(norm, fused(norm, kTe).backward), Names{"BackwardAddRMSNorm"});
}

TEST(FuserTe, OpsThatAllNeedNoGradientAreNotFusedBackward) {
  const Link frozen = with(linear(16), "weight_requires_grad", false);
  const Graph graph = chain(DType::BF16, {8, 16}, {inPlace(link("MakeExtraOutput", "save")), frozen, link("RMSNorm")},
                            {.inputRequiresGradient = false, .extraOutputs = {"save.extra"}});
  EXPECT_EQ(names(graph, fused(graph, kTe).backward), Names{"RMSNorm"});
}

/// TransformerEngine fuses and then raises: the GEMM cannot add to a tensor of another dtype.
TEST(FuserTe, ASumInPlaceOfAnotherDTypeIsLeftToTheNextRule) {
  const Link add = inPlace(link("AddExtraInput", "add", "save.extra"));
  const Link f32 = with(linear(16), "dtype", std::string("f32"));
  const Graph graph = chain(DType::BF16, {8, 16}, {link("MakeExtraOutput", "save"), f32, add});
  const FusionReport report = fused(graph, kTe);
  EXPECT_EQ(names(graph, report.forward), (Names{"MakeExtraOutput", "BasicLinear", "AddExtraInput"}));
  EXPECT_EQ(attemptOf(report, "ForwardLinearBiasAdd")->outcome, Outcome::ConditionFailed);
}

/// The norm keeps the tensor that the sum would overwrite there: `export --to te` switches in_place off.
TEST(FuserTe, ASumThatTransformerEngineMustNotMakeInPlaceSaysSo) {
  const std::vector<Link> links = {link("MakeExtraOutput", "save"), link("RMSNorm", "norm"), linear(16, "fc"),
                                   inPlace(link("AddExtraInput", "add", "save.extra"))};
  const Graph graph = chain(DType::BF16, {8, 16}, links);
  const FusionReport report = fused(graph, kTe);
  const std::string caveat =
      "not fused in the module of `export --to te`, which sets in_place of add to false: norm keeps that tensor, "
      "save.y, for backward";
  EXPECT_EQ(attemptOf(report, "ForwardLinearBiasAdd")->explanation, "fc, add are fused; " + caveat + ".");
  EXPECT_NE(planTree(graph, report).find("ForwardLinearBiasAdd (forward, te)  (" + caveat + ")"), std::string::npos);
  EXPECT_EQ(attemptOf(fused(graph), "ForwardLinearBiasAdd")->caveat, "");
  const Graph inference = chain(DType::BF16, {8, 16}, links, {.pass = ExecutionMode::Inference});
  EXPECT_EQ(attemptOf(fused(inference, kTe), "ForwardLinearBiasAdd")->caveat, "");
}

/// TransformerEngine's grouped_mlp.py, recompute_srelu_fc2_x: for ScaledSReLU alone.
TEST(FuserTe, AGroupedMlpKeepsNoActivationThatIsComputedAgain) {
  const auto keepsFc2Input = [](Link activation, bool isComputedAgain) {
    const GroupedMlp mlp{.activation = with(std::move(activation), "activation_recompute_in_mlp", isComputedAgain),
                         .hidden = 64};
    const Graph graph = mlp.graph();
    const FusionReport report = mlp.report(graph);
    const std::vector<MemberTensor> kept = savedReads(graph, report.backward.front());
    return std::ranges::any_of(kept, [](const MemberTensor& read) {
      return read.member == 2 && read.tensor == SavedTensor{OperandKind::Input, 0};
    });
  };
  EXPECT_TRUE(keepsFc2Input(link("ScaledSReLU", "act"), false));
  EXPECT_FALSE(keepsFc2Input(link("ScaledSReLU", "act"), true));
}

TEST(FuserTe, AGroupedMlpSaysWhatIsInItsWay) {
  EXPECT_EQ(GroupedMlp{.recipe = ""}.refusal(),
            "The recipe is None, but GroupedMLP_CuTeGEMMGLU needs MXFP8BlockScaling or NVFP4BlockScaling.");
  EXPECT_EQ((GroupedMlp{.capability = ComputeCapability{9, 0}}.refusal()),
            "GroupedMLP_CuTeGEMMGLU needs a GPU of compute capability 10.0 (sm_100) or newer, below 10.8 (sm_108), but "
            "the device has 9.0 (sm_90).");
  EXPECT_EQ(GroupedMlp{.rows = 96}.refusal(),
            "x, the input of fc1, has 96 rows, but the kernel needs multiples of 128.");
  EXPECT_EQ(GroupedMlp{.hidden = 192}.refusal(), "fc2 has in_features 96, but the kernel needs multiples of 64.");
  EXPECT_EQ(GroupedMlp{.splitSizes = ""}.refusal(),
            "fc1 splits its rows by fc1_split_sizes, but fc2 by fc2_split_sizes. The kernel reads one split_sizes "
            "tensor for the two layers.");
  EXPECT_EQ(GroupedMlp{.activation = link("ScaledSwiGLU", "act")}.refusal(),
            "act has glu_interleave_size not set, but this fusion needs 32.");
}

/// With the newest cuDNN front-end. Releases before 1.24 have the default values only.
TEST(FuserTe, AGroupedMlpTakesAnyParametersOfItsActivation) {
  const Link clamped = with(link("ScaledClampedQGeGLU", "act"), "glu_interleave_size", std::int64_t{32});
  const GroupedMlp mlp{.activation = with(with(clamped, "alpha", 1.5), "limit", 5.0)};
  const Graph graph = mlp.graph();
  EXPECT_EQ(names(graph, mlp.report(graph).forward), Names{"GroupedMLP_CuTeGEMMGLU"});
}

// The order in which TransformerEngine registers its fusions; each of the joint rules is put in front.
TEST(FuserTe, RulesStandInTransformerEnginesOrder) {
  Names order;
  for (const FusionPass pass : {FusionPass::Joint, FusionPass::Forward, FusionPass::Backward})
    for (const auto& rule : builtinRules().rules(pass))
      if (rule->origin == RuleOrigin::Te) order.push_back(rule->name);
  EXPECT_EQ(order, (Names{"GroupedMLP_CuTeGEMMUnary", "GroupedMLP_CuTeGEMMGLU", "UserbuffersForwardLinear",
                          "ForwardLinearBiasAdd", "ForwardLinearBiasActivation", "ForwardLinearScaleAdd",
                          "UserbuffersBackwardLinear", "BackwardLinearAdd", "BackwardLinearScale",
                          "BackwardActivationBias", "BackwardAddRMSNorm"}));
}

TEST(FuserTe, OwnRulesStayOut) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16), link("Bias"), link("GELU"), link("ConstantScale")});
  for (const Attempt& attempt : fused(graph, kTe).attempts) EXPECT_EQ(attempt.rule->origin, RuleOrigin::Te);
}

// Our own chapter.

TEST(Fuser, LinearBiasGeluIsOneEntryForward) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16), link("Bias"), link("GELU")});
  const FusionReport report = fused(graph);
  EXPECT_EQ(names(graph, report.forward), Names{"ForwardLinearEpilogue"});
  EXPECT_EQ(names(graph, report.backward), (Names{"BasicLinear", "BackwardElementwiseChain"}));
}

TEST(Fuser, LinearBiasDropoutAndResidualAreOneEntryForward) {
  for (const DType dtype : {DType::BF16, DType::F32}) {
    const Graph graph = chain(dtype, {8, 16}, {linear(16), link("Bias"), link("Dropout"), link("AddExtraInput")});
    EXPECT_EQ(names(graph, fused(graph).forward), Names{"ForwardLinearEpilogue"});
  }
}

TEST(Fuser, WhatTransformerEngineTakesAsAWholeIsLeftToItsRules) {
  const Link add = inPlace(link("AddExtraInput"));
  const auto forwardOf = [](const std::vector<Link>& links) {
    const Graph graph = chain(DType::BF16, {8, 16}, links);
    return names(graph, fused(graph).forward);
  };
  EXPECT_EQ(forwardOf({linear(16), add}), Names{"ForwardLinearBiasAdd"});
  EXPECT_EQ(forwardOf({linear(16), link("Bias"), add}), Names{"ForwardLinearBiasAdd"});
  EXPECT_EQ(forwardOf({linear(16), link("ConstantScale"), add}), Names{"ForwardLinearScaleAdd"});
  EXPECT_EQ(forwardOf({linear(16), link("Bias")}), Names{"ForwardLinearBiasActivation"});
}

TEST(Fuser, WhatTransformerEngineRefusesOrLeavesOverGoesToTheLongerRule) {
  const Link add = link("AddExtraInput", "add");
  for (const std::vector<Link>& tail : std::vector<std::vector<Link>>{
           {add}, {swapped(inPlace(add))}, {link("Bias"), link("SReLU")}, {link("Bias"), inPlace(add), link("GELU")}}) {
    std::vector<Link> links{linear(16)};
    links.insert(links.end(), tail.begin(), tail.end());
    const Graph graph = chain(DType::BF16, {8, 16}, links);
    EXPECT_EQ(names(graph, fused(graph).forward), Names{"ForwardLinearEpilogue"}) << toString(graph);
  }
}

TEST(Fuser, AnEpilogueEndsBeforeALaterGatedOpAndBeforeABranch) {
  const Graph gated = chain(DType::BF16, {8, 16}, {linear(32), link("Bias"), link("GELU"), link("SwiGLU")});
  EXPECT_EQ(names(gated, fused(gated).forward), (Names{"ForwardLinearEpilogue", "SwiGLU"}));
  const Graph branch =
      chain(DType::BF16, {8, 16}, {linear(16), link("GELU"), link("MakeExtraOutput"), link("RMSNorm")});
  EXPECT_EQ(names(branch, fused(branch).forward), (Names{"ForwardLinearEpilogue", "MakeExtraOutput", "RMSNorm"}));
}

TEST(Fuser, ABiasWithNothingElementwiseBehindItsLinearJoinsTheLinearBackward) {
  const Graph graph = chain(DType::F32, {8, 16}, {linear(16), link("Bias"), link("LayerNorm")});
  EXPECT_EQ(names(graph, fused(graph).backward), (Names{"BackwardLinearBias", "LayerNorm"}));
  EXPECT_EQ(names(graph, fused(graph, kTe).backward), (Names{"BasicLinear", "Bias", "LayerNorm"}));
}

TEST(Fuser, ABiasStaysWithWhatFollowsItWhereThatSavesMore) {
  const Graph gated = chain(DType::BF16, {8, 16}, {linear(32), link("Bias"), link("SwiGLU")});
  EXPECT_EQ(names(gated, fused(gated).backward), (Names{"BasicLinear", "BackwardBiasSwiGLU"}));
  const Graph plain = chain(DType::BF16, {8, 16}, {linear(16), link("Bias"), link("Dropout")});
  EXPECT_EQ(names(plain, fused(plain).backward), (Names{"BasicLinear", "BackwardElementwiseChain"}));
}

/// The rules that would take one of its ops gain less: two passes over the activation's gradient outweigh one.
TEST(Fuser, AnActivationJoinsTheLinearBehindItAndLeavesItsBiasToTheOneBefore) {
  for (const char* const activation : {"GELU", "ReLU"}) {
    const Graph graph = chain(DType::BF16, {8, 16},
                              {link("LayerNorm"), linear(64, "fc1"), link("Bias", "b1"), link(activation, "act"),
                               linear(16, "fc2"), link("Bias", "b2")});
    const FusionReport report = fused(graph);
    EXPECT_EQ(names(graph, report.backward), (Names{"LayerNorm", "BackwardLinearBias", "BackwardActivationLinear"}));
    EXPECT_EQ(attemptOf(report, "BackwardActivationLinear")->nodes, (std::vector<NodeId>{3, 4, 5}));
    EXPECT_EQ(attemptOf(report, "BackwardElementwiseChain")->outcome, Outcome::TakenByAnother);
  }
}

/// Either spares one tensor of the same size; the chain does on every device.
TEST(Fuser, AnActivationStaysInAChainThatGainsAsMuch) {
  const Graph graph = chain(DType::BF16, {8, 16}, {link("ConstantScale"), link("GELU"), linear(16)});
  EXPECT_EQ(names(graph, fused(graph).backward), (Names{"BackwardElementwiseChain", "BasicLinear"}));
}

TEST(Fuser, AnActivationIsLeftToThePassThatQuantizesItsGradient) {
  const std::vector<Link> links = {linear(32, "fc1"), link("Bias", "b1"), link("GELU", "act"), linear(32, "fc2")};
  for (const char* const recipe : {"Float8CurrentScaling", "DelayedScaling", "MXFP8BlockScaling"}) {
    const ChainOptions options{.recipe = recipe};
    const Graph graph = chain(DType::BF16, {32, 32}, links, options);
    const FusionReport report = fused(graph, {.target = {.recipe = recipeOf(options)}});
    EXPECT_EQ(names(graph, report.backward), (Names{"BasicLinear", "BackwardActivationBias", "BasicLinear"})) << recipe;
    EXPECT_THAT(attemptOf(report, "BackwardActivationLinear")->explanation,
                ::testing::StartsWith("fc1 (BasicLinear) quantizes the gradient that act produces."));
  }
}

/// Parts of a gradient are summed before it is quantized.
TEST(Fuser, AnActivationWhoseGradientIsOnePartOfASumIsNotQuantizedAsMade) {
  const ChainOptions options{.recipe = "MXFP8BlockScaling"};
  const Graph graph = chain(
      DType::BF16, {32, 32},
      {linear(32, "fc1"), link("GELU", "act"), linear(32, "fc2"), link("AddExtraInput", "add", "fc1.y")}, options);
  EXPECT_EQ(attemptOf(fused(graph, {.target = {.recipe = recipeOf(options)}}), "BackwardActivationLinear")->outcome,
            Outcome::Fused);
}

TEST(Fuser, AnActivationThatKeepsCodesDoesNotJoinItsLinear) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {with(link("GELU", "act"), "cache_quantized_input", true), linear(16)});
  const FusionReport report = fused(graph);
  const Attempt* attempt = attemptOf(report, "BackwardActivationLinear");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::ConditionFailed);
  ASSERT_EQ(attempt->repairs.size(), 1u);
  EXPECT_EQ(attempt->repairs.front().label, "Set act.cache_quantized_input to false");
}

TEST(Fuser, JointFusionStandsInBothLists) {
  const Graph graph = chain(DType::BF16, {8, 32}, {link("SwiGLU"), linear(16)});
  const FusionReport report = fused(graph, {.switches = {.with = {"ForwardBackwardSwiGLULinear"}}});
  EXPECT_EQ(names(graph, report.forward), Names{"ForwardBackwardSwiGLULinear"});
  EXPECT_EQ(names(graph, report.backward), Names{"ForwardBackwardSwiGLULinear"});
}

TEST(Fuser, ARuleWithAPriceAppliesOnRequestOnly) {
  const Graph graph = chain(DType::BF16, {8, 32}, {link("SwiGLU", "act"), linear(16)});
  const FusionReport report = fused(graph);
  EXPECT_EQ(names(graph, report.forward), (Names{"SwiGLU", "BasicLinear"}));
  const Attempt& attempt = report.attempts.front();
  EXPECT_EQ(attempt.outcome, Outcome::OnRequest);
  EXPECT_EQ(attempt.explanation,
            "It would keep 256 B less for backward. Backward recomputes SwiGLU's output, which takes one more pass. It "
            "is used only on request.");
  EXPECT_EQ(requestFor(graph, attempt), "ForwardBackwardSwiGLULinear@act");
  EXPECT_FALSE(attempt.saving.has_value());
}

TEST(Fuser, ARequestCanNameOnePlace) {
  const Graph graph =
      chain(DType::BF16, {8, 32}, {link("SwiGLU", "a"), linear(32), link("SwiGLU", "b"), linear(16, "fc2")});
  const FusionReport report = fused(graph, {.switches = {.with = {"ForwardBackwardSwiGLULinear@b"}}});
  EXPECT_EQ(names(graph, report.forward), (Names{"SwiGLU", "BasicLinear", "ForwardBackwardSwiGLULinear"}));
}

TEST(Fuser, ARequestForAnUnknownRuleIsAnError) {
  const Graph graph = chain(DType::BF16, {8, 16}, {link("GELU")});
  const Result<FusionReport> report = fuse(graph, {.switches = {.with = {"Nope"}}});
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, ::testing::HasSubstr("\"Nope\" asks for a rule that does not exist"));
}

TEST(Fuser, AddAndNormAreOneEntryWithTheBranchBetween) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {link("AddExtraInput"), link("MakeExtraOutput", "save"), link("RMSNorm")},
            {.extraOutputs = {"save.extra"}});
  EXPECT_EQ(names(graph, fused(graph).forward), Names{"ForwardAddNorm"});
}

TEST(Fuser, ElementwiseChainTakesAsManyOpsAsThereAre) {
  const Graph graph =
      chain(DType::F32, {8, 16},
            {link("ConstantScale"), link("Bias"), link("GELU"), link("ConstantScale"), link("AddExtraInput")});
  const FusionReport report = fused(graph);
  ASSERT_EQ(names(graph, report.forward), Names{"ForwardElementwiseChain"});
  EXPECT_EQ(report.forward.front().nodes.size(), 5U);
  EXPECT_EQ(names(graph, report.backward), Names{"BackwardElementwiseChain"});
}

TEST(Fuser, BiasBeforeSwiGLUFusesBackward) {
  const Graph graph = chain(DType::F32, {8, 16}, {link("Bias"), link("SwiGLU")});
  EXPECT_EQ(names(graph, fused(graph).backward), Names{"BackwardBiasSwiGLU"});
}

TEST(Fuser, InferenceHasNoBackwardAndNoJointFusion) {
  const Graph graph = chain(DType::BF16, {8, 32}, {link("SwiGLU"), linear(16)}, {.pass = ExecutionMode::Inference});
  const FusionReport report = fused(graph);
  EXPECT_EQ(names(graph, report.forward), (Names{"SwiGLU", "BasicLinear"}));
  EXPECT_TRUE(report.backward.empty());
}

// Refusals.

TEST(Fuser, RefusesWhenAnIntermediateIsReadTwice) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16, "fc"), link("Bias")}, {.extraOutputs = {"fc.y"}});
  const FusionReport report = fused(graph);
  const Attempt* attempt = attemptOf(report, "ForwardLinearBiasActivation");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::OutsideUse);
  EXPECT_NE(attempt->explanation.find("fc.y is consumed by bias1 and the outside"), std::string::npos)
      << attempt->explanation;
}

TEST(Fuser, NamesTheOpThatBreaksTheChain) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16, "fc"), link("GELU", "act")});
  const FusionReport report = fused(graph);
  const Attempt* attempt = attemptOf(report, "ForwardLinearBiasActivation");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::BrokenChain);
  EXPECT_EQ(attempt->stepsMatched, 1U);
  EXPECT_EQ(attempt->explanation, "fc (BasicLinear) is followed by act (GELU), not Bias.");
}

TEST(Fuser, OffersInPlaceAsTheFix) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16), link("AddExtraInput", "add")});
  const Attempt* attempt = nullptr;
  const FusionReport report = fused(graph, kTe);
  attempt = attemptOf(report, "ForwardLinearBiasAdd");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::ConditionFailed);
  ASSERT_EQ(attempt->repairs.size(), 1U);
  const auto* edit = std::get_if<SetAttribute>(&attempt->repairs.front().edit);
  ASSERT_NE(edit, nullptr);
  EXPECT_EQ(edit->id, "add");
  EXPECT_EQ(edit->value, Json(true));
}

TEST(Fuser, SaysWhichFusionTookTheOp) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {linear(16, "fc"), link("Bias", "b"), inPlace(link("AddExtraInput", "add"))});
  const FusionReport report = fused(graph);
  const Attempt* attempt = attemptOf(report, "ForwardLinearBiasActivation");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::TakenByAnother);
  EXPECT_NE(attempt->explanation.find("ForwardLinearBiasAdd (fc, b, add)"), std::string::npos) << attempt->explanation;
}

TEST(Fuser, ARuleCanBeSwitchedOffEverywhereOrAtOnePlace) {
  const Graph graph = chain(DType::BF16, {8, 16},
                            {linear(16, "fc1"), link("Bias"), link("LayerNorm"), linear(16, "fc2"), link("Bias")});
  EXPECT_EQ(names(graph, fused(graph, {.switches = {.without = {"ForwardLinearBiasActivation"}}}).forward),
            (Names{"BasicLinear", "Bias", "LayerNorm", "BasicLinear", "Bias"}));
  EXPECT_EQ(names(graph, fused(graph, {.switches = {.without = {"ForwardLinearBiasActivation@fc2"}}}).forward),
            (Names{"ForwardLinearBiasActivation", "LayerNorm", "BasicLinear", "Bias"}));
}

TEST(Fuser, AnUnknownSwitchNamesTheNearestRule) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16)});
  const Result<FusionReport> report = fuse(graph, {.switches = {.without = {"ForwardLinearEpilouge"}}});
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("did you mean ForwardLinearEpilogue"), std::string::npos)
      << report.error().message;
}

TEST(Fuser, AMissingKernelIsAReason) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16), link("Bias"), link("GELU")});
  const Capabilities none = [](const KernelQuery& query) {
    return Verdict::no(std::string("no ") + std::string(query.kernel));
  };
  const FusionReport report = fused(graph, {.capabilities = none});
  EXPECT_EQ(names(graph, report.forward), (Names{"BasicLinear", "Bias", "GELU"}));
  EXPECT_EQ(attemptOf(report, "ForwardLinearEpilogue")->outcome, Outcome::NoKernel);
}

TEST(Fuser, AFrozenOpTakesNoPartInABackwardFusion) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {link("MakeExtraOutput", "save"), link("RMSNorm")}, {.inputRequiresGradient = false});
  const FusionReport report = fused(graph);
  EXPECT_EQ(names(graph, report.backward), Names{"RMSNorm"});
  EXPECT_EQ(attemptOf(report, "BackwardAddRMSNorm")->explanation,
            "save (MakeExtraOutput) needs no gradient, so it is not part of backward.");
}

TEST(Fuser, AResidualWithinAnElementwiseChainFusesWithIt) {
  const Graph graph = chain(DType::F32, {8, 16},
                            {link("MakeExtraOutput", "save"), link("GELU"), link("AddExtraInput", "add", "save.extra"),
                             link("ConstantScale")});
  const FusionReport report = fused(graph);
  EXPECT_EQ(names(graph, report.forward), Names{"ForwardElementwiseChain"});
}

TEST(Fuser, SameGraphSameReportByteForByte) {
  const auto build = [] {
    return chain(DType::BF16, {8, 32},
                 {link("RMSNorm"), linear(64), link("SwiGLU"), linear(32), inPlace(link("AddExtraInput"))});
  };
  const Graph a = build();
  const Graph b = build();
  EXPECT_EQ(toTree(a, fused(a)), toTree(b, fused(b)));
  EXPECT_EQ(toJson(a, fused(a)).dump(), toJson(b, fused(b)).dump());
}

// Savings, by the minimum-traffic model: M = 8 rows, 16 columns, 2 bytes.

TEST(FuserSaving, LinearBiasSavesOneRoundTripOfTheOutput) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16), link("Bias")});
  const FusionReport report = fused(graph);
  const Attempt* attempt = attemptOf(report, "ForwardLinearBiasActivation");
  ASSERT_TRUE(attempt && attempt->saving);
  EXPECT_EQ(attempt->saving->bytes, 2 * 8 * 16 * 2);
  EXPECT_EQ(attempt->saving->launches, 1);
}

TEST(FuserSaving, NormBackwardAddSavesOneRoundTripOfTheGradient) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {link("MakeExtraOutput", "save"), link("RMSNorm")}, {.extraOutputs = {"save.extra"}});
  const FusionReport report = fused(graph);
  const Attempt* attempt = attemptOf(report, "BackwardAddRMSNorm");
  ASSERT_TRUE(attempt && attempt->saving);
  EXPECT_EQ(attempt->saving->bytes, 2 * 8 * 16 * 2);
  EXPECT_EQ(attempt->saving->launches, 1);
}

// The choice among overlapping fusions. A tensor has 8 * 16 * 2 = 256 bytes.

TEST(FuserGain, AnEarlierRuleThatSavesLessLeavesTheOpToALaterOne) {
  // Training keeps the sum for the norm, so that ForwardAddNorm only saves reading it; the chain saves GELU's output.
  const Graph graph =
      chain(DType::BF16, {8, 16}, {link("GELU", "act"), link("AddExtraInput", "add"), link("RMSNorm", "norm")});
  const FusionReport report = fused(graph);
  EXPECT_EQ(names(graph, report.forward), (Names{"ForwardElementwiseChain", "RMSNorm"}));
  const Attempt* attempt = attemptOf(report, "ForwardAddNorm");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::TakenByAnother);
  EXPECT_EQ(attempt->explanation,
            "add is part of ForwardElementwiseChain (act, add), which is predicted to save 512 B and 1 launch; this "
            "fusion is predicted to save 256 B and 1 launch.");
}

TEST(FuserGain, EqualGainsGoToTheEarlierRule) {
  const Graph graph = chain(DType::BF16, {8, 16}, {link("GELU"), link("AddExtraInput"), link("RMSNorm")},
                            {.pass = ExecutionMode::Inference});
  EXPECT_EQ(names(graph, fused(graph).forward), (Names{"GELU", "ForwardAddNorm"}));
}

TEST(FuserGain, APartOfALongRunMayLeaveTheRestToAnotherFusion) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {link("GELU"), link("ConstantScale"), link("AddExtraInput"), link("RMSNorm")},
            {.pass = ExecutionMode::Inference});
  EXPECT_EQ(names(graph, fused(graph).forward), (Names{"ForwardElementwiseChain", "ForwardAddNorm"}));
}

TEST(FuserGain, WhatIsAskedForByNameGoesBeforeWhatGainsMore) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {link("GELU", "act"), link("AddExtraInput", "add"), link("RMSNorm", "norm")});
  const FusionReport report = fused(graph, {.switches = {.with = {"ForwardAddNorm@norm"}}});
  EXPECT_EQ(names(graph, report.forward), (Names{"GELU", "ForwardAddNorm"}));
}

TEST(FuserGain, TransformerEnginesOrderKnowsNoGain) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16), link("Bias"), inPlace(link("AddExtraInput"))});
  GainModel gains;
  gains.measured["ForwardLinearBiasAdd(basiclinear0, bias1, addextrainput2)"] = std::make_shared<MeasuredGain>(
      MeasuredGain{.gainNs = -1e6, .speedup = 0.5, .speedupLow = 0.4, .speedupHigh = 0.6, .device = "a test device"});
  EXPECT_EQ(names(graph, fused(graph, {.book = RuleBook::Te, .gains = gains}).forward), Names{"ForwardLinearBiasAdd"});
}

GainModel measuredGelu(double gainNs, double speedup) {
  GainModel gains;
  gains.measured["ForwardElementwiseChain(act, scale)"] =
      std::make_shared<MeasuredGain>(MeasuredGain{.gainNs = gainNs,
                                                  .speedup = speedup,
                                                  .speedupLow = speedup - 0.01,
                                                  .speedupHigh = speedup + 0.01,
                                                  .device = "a test device"});
  return gains;
}

Graph geluAndScale() { return chain(DType::BF16, {8, 16}, {link("GELU", "act"), link("ConstantScale", "scale")}); }

TEST(FuserGain, WhatWasMeasuredAsSlowerIsNotChosen) {
  const Graph graph = geluAndScale();
  const FusionReport report = fused(graph, {.gains = measuredGelu(-1500, 0.9)});
  EXPECT_EQ(names(graph, report.forward), (Names{"GELU", "ConstantScale"}));
  const Attempt* attempt = attemptOf(report, "ForwardElementwiseChain");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::MeasuredSlower);
  EXPECT_EQ(attempt->explanation,
            "It was predicted to save 512 B and 1 launch but measured to lose 1.50 us (0.90x, 95 % interval 0.89 to "
            "0.91) on a test device. It is used only on request.");
  EXPECT_EQ(requestFor(graph, *attempt), "ForwardElementwiseChain@act");
}

TEST(FuserGain, WhatWasMeasuredAsSlowerIsUsedWhenAskedFor) {
  const Graph graph = geluAndScale();
  const FusionReport report =
      fused(graph, {.switches = {.with = {"ForwardElementwiseChain@act"}}, .gains = measuredGelu(-1500, 0.9)});
  EXPECT_EQ(names(graph, report.forward), Names{"ForwardElementwiseChain"});
}

TEST(FuserGain, AFigureWithinItsSpreadForbidsNothing) {
  const Graph graph = geluAndScale();
  const FusionReport report = fused(graph, {.gains = measuredGelu(-10, 0.995)});
  EXPECT_EQ(names(graph, report.forward), Names{"ForwardElementwiseChain"});
  EXPECT_TRUE(attemptOf(report, "ForwardElementwiseChain")->measured);
}

TEST(FuserGain, FiguresThatDoNotDecideAreOnlyTold) {
  const Graph graph = geluAndScale();
  GainModel gains = measuredGelu(-1500, 0.9);
  gains.device = {.bandwidthBytesPerSecond = 1e9, .source = "a test"};
  gains.decides = false;
  const FusionReport report = fused(graph, {.gains = gains});
  EXPECT_EQ(names(graph, report.forward), Names{"ForwardElementwiseChain"});
  EXPECT_EQ(report.device.source, "a test");
  const Attempt* attempt = attemptBehind(report, report.forward.front());
  ASSERT_NE(attempt, nullptr);
  ASSERT_TRUE(attempt->measured);
  EXPECT_EQ(attempt->measured->gainNs, -1500);
}

TEST(FuserGain, MissesAreOrderedByWhatTheyWouldGain) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16, "fc"), link("Bias", "b"), link("GELU", "act")});
  std::vector<std::int64_t> missed;
  for (const Attempt& attempt : fused(graph).attempts)
    if (attempt.outcome != Outcome::Fused) missed.push_back(attempt.saving ? attempt.saving->bytes : -1);
  EXPECT_GT(missed.size(), 3U);
  EXPECT_TRUE(std::ranges::is_sorted(missed, std::greater())) << ::testing::PrintToString(missed);
}

TEST(FuserCatalog, PrependPutsARuleFirst) {
  RuleCatalog catalog;
  const auto named = [](const char* name) {
    return FusionRule{.name = name, .chain = {{.role = "op", .operations = {"GELU"}}}, .becomes = "elementwise"};
  };
  FusionRule joint = named("J");
  joint.saves = [](const Match&) { return std::vector<MemberTensor>{}; };
  EXPECT_TRUE(catalog.registerForwardFusion(named("B")));
  EXPECT_TRUE(catalog.registerForwardFusion(named("A"), true));
  EXPECT_TRUE(catalog.registerForwardBackwardFusion(joint));
  ASSERT_EQ(catalog.all().size(), 3U);
  EXPECT_EQ(catalog.all()[0]->name, "J");
  EXPECT_EQ(catalog.all()[1]->name, "A");
}

/// The sentence with which a joint rule is refused after a change; empty when it is accepted.
std::string refusalAfter(const std::function<void(FusionRule&)>& change) {
  FusionRule rule{.name = "Probe",
                  .pass = FusionPass::Joint,
                  .chain = {{.role = "op", .operations = {"GELU"}}},
                  .becomes = "elementwise",
                  .saves = [](const Match&) { return std::vector<MemberTensor>{}; }};
  change(rule);
  RuleCatalog catalog;
  const Result<void> added = catalog.registerFusion(rule);
  return added ? "" : added.error().message;
}

TEST(FuserCatalog, RefusesHalfARule) {
  EXPECT_EQ(refusalAfter([](FusionRule&) {}), "");
  EXPECT_EQ(refusalAfter([](FusionRule& rule) { rule.name.clear(); }), "A fusion rule has no name.");
  EXPECT_EQ(refusalAfter([](FusionRule& rule) { rule.chain.clear(); }),
            "Probe: a fusion needs at least one op in its chain.");
  EXPECT_EQ(refusalAfter([](FusionRule& rule) { rule.chain.front().repeat = Repeat::Optional; }),
            "Probe: the first op of a chain cannot be optional.");
  EXPECT_EQ(refusalAfter([](FusionRule& rule) { rule.becomes.clear(); }), "Probe: the fusion has no kernel.");
}

TEST(FuserCatalog, RefusesHalfOfWhatIsKeptForBackward) {
  EXPECT_EQ(refusalAfter([](FusionRule& rule) { rule.saves = nullptr; }),
            "Probe: a joint rule replaces forward and backward; expected a saves function, found none.");
  for (const FusionPass pass : {FusionPass::Forward, FusionPass::Backward})
    EXPECT_EQ(refusalAfter([&](FusionRule& rule) { rule.pass = pass; }),
              "Probe: a " + std::string(passName(pass)) +
                  " rule keeps the tensors that its ops keep for backward. Remove the saves function.");
}

TEST(FuserCatalog, RefusesANameThatIsTaken) {
  RuleCatalog catalog = builtinRules();
  const FusionRule copy = *builtinRules().all().front();
  const Result<void> added = catalog.registerFusion(copy);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().message, copy.name + ": two fusion rules have this name.");
}

// Invalid reports.

std::string brokenExpansion(const Graph& graph, const std::function<void(std::vector<FusedOperation>&)>& breakList) {
  FusionReport report = unfused(graph);
  breakList(report.backward);
  return verifyExpansion(graph, report).reason();
}

TEST(VerifyExpansion, NamesTheOpThatIsNotThereOnceAndInOrder) {
  const Graph graph = chain(DType::BF16, {8, 16}, {link("GELU", "a"), link("SiLU", "b")});
  const auto broken = [&](auto breakList) { return brokenExpansion(graph, breakList); };
  EXPECT_EQ(broken([](auto&) {}), "");
  EXPECT_EQ(broken([](auto& list) { list.push_back(list.front()); }), "a (GELU) is in two entries.");
  EXPECT_EQ(broken([](auto& list) { list.pop_back(); }), "b (SiLU) is missing from the backward list.");
  EXPECT_EQ(broken([](auto& list) { std::swap(list[0], list[1]); }),
            "b (SiLU) runs before a (GELU), whose result it consumes.");
}

// Patterns on the DAG: operands in any order, steps that may be left out, branches.

/// add, norm, and a later residual that reads the sum as well.
std::vector<Link> sumReadTwice(const Link& second) {
  return {link("AddExtraInput", "add"), link("RMSNorm", "norm"), linear(16, "fc"), second};
}

TEST(FuserBranches, ASumThatIsReadLaterAsWellIsWrittenByItsFusion) {
  const Graph graph = chain(DType::BF16, {8, 16}, sumReadTwice(link("AddExtraInput", "add2", "add.y")));
  const FusionReport report = fused(graph);
  EXPECT_EQ(names(graph, report.forward), (Names{"ForwardAddNorm", "ForwardLinearEpilogue"}));
}

TEST(FuserBranches, AResidualMayStandOnEitherInput) {
  for (const bool isSwapped : {false, true}) {
    const Link add = link("AddExtraInput", "add2", "add.y");
    const Graph graph = chain(DType::BF16, {8, 16}, sumReadTwice(isSwapped ? swapped(add) : add));
    EXPECT_EQ(names(graph, fused(graph).forward), (Names{"ForwardAddNorm", "ForwardLinearEpilogue"}));
  }
}

TEST(FuserBranches, ARunEndsBeforeItWouldComeTooLateForAReaderOutside) {
  // "other" reads a.y and precedes c.
  const Graph graph = chain(DType::BF16, {8, 16},
                            {link("GELU", "a"), link("SiLU", "b"), reading("a.y", link("RMSNorm", "other")),
                             reading("b.y", link("ReLU", "c"))},
                            {.extraOutputs = {"other.y"}});
  const FusionReport report = fused(graph);
  ASSERT_EQ(names(graph, report.forward), (Names{"ForwardElementwiseChain", "RMSNorm", "ReLU"}));
  EXPECT_EQ(report.forward.front().nodes.size(), 2U);
}

TEST(FuserBranches, AFusionThatWouldComeTooLateSaysForWhom) {
  const Graph graph =
      chain(DType::BF16, {8, 16},
            {link("AddExtraInput", "add"), link("GELU", "act"), reading("add.y", link("RMSNorm", "norm"))},
            {.extraOutputs = {"act.y"}});
  const FusionReport report = fused(graph, {.switches = {.without = {"ForwardElementwiseChain"}}});
  const Attempt* attempt = attemptOf(report, "ForwardAddNorm");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::OutsideUse);
  EXPECT_EQ(attempt->explanation, "act (GELU) consumes add.y before norm has run.");
}

TEST(FuserBranches, OfTwoFusionsThatPartAtABranchOneIsChosenAndTheOtherSaysSo) {
  const Graph graph =
      chain(DType::BF16, {8, 16},
            {link("AddExtraInput", "add"), link("RMSNorm", "norm"), reading("add.y", link("GELU", "act"))},
            {.extraOutputs = {"norm.y"}});
  const FusionReport report = fused(graph);
  EXPECT_EQ(names(graph, report.forward), (Names{"ForwardAddNorm", "GELU"}));
  const Attempt* attempt = attemptOf(report, "ForwardElementwiseChain");
  ASSERT_NE(attempt, nullptr);
  EXPECT_NE(attempt->outcome, Outcome::Fused);
}

TEST(FuserBranches, AGradientThatBranchesAddUpInBackwardStaysOutsideOfFusions) {
  const Graph graph = chain(DType::BF16, {8, 16}, {link("GELU", "a"), link("SiLU", "b")}, {.extraOutputs = {"a.y"}});
  const FusionReport report = fused(graph);
  EXPECT_EQ(names(graph, report.forward), Names{"ForwardElementwiseChain"});
  EXPECT_EQ(names(graph, report.backward), (Names{"GELU", "SiLU"}));
  EXPECT_EQ(attemptOf(report, "BackwardElementwiseChain")->explanation,
            "a.y is consumed by b and the outside (it is a pipeline output); the gradients of its consumers are summed "
            "between these ops. Insert MakeExtraOutput at the branch so that the sum can be fused.");
}

TEST(FuserBranches, TransformerEnginesRulesFollowTheMainTensor) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {link("MakeExtraOutput", "save"), reading("save.extra", link("RMSNorm", "norm"))},
            {.extraOutputs = {"save.y"}});
  const FusionReport report = fused(graph);
  EXPECT_EQ(attemptOf(report, "BackwardAddRMSNorm")->explanation,
            "norm (RMSNorm) consumes save.extra; as in TransformerEngine, the rule follows the main output, save.y.");
}

TEST(FuserBranches, OurOwnRulesFollowABranchAsWell) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {link("MakeExtraOutput", "save"), reading("save.extra", link("LayerNorm", "norm"))},
            {.extraOutputs = {"save.y"}});
  EXPECT_EQ(names(graph, fused(graph).backward), Names{"BackwardAddLayerNorm"});
}

// Nested Sequentials.

const Attempt* attemptAt(const Graph& graph, const FusionReport& report, std::string_view rule, std::string_view op) {
  for (const Attempt& attempt : report.attempts)
    if (attempt.rule->name == rule && graph.node(attempt.nodes.front()).id == op) return &attempt;
  return nullptr;
}

/// linear, Bias | GELU, ConstantScale
std::vector<Link> twoHalves(const std::string& first, const std::string& second) {
  return {inside(first, linear(16, "fc")), inside(first, link("Bias", "bias")), inside(second, link("GELU", "act")),
          inside(second, link("ConstantScale", "scale"))};
}

TEST(Sequentials, AreTwoGroupsWhereTheSamePipelineWithoutThemIsOne) {
  const Graph flat = chain(DType::BF16, {8, 16}, twoHalves("", ""));
  EXPECT_EQ(names(flat, fused(flat).forward), Names{"ForwardLinearEpilogue"});
  for (const auto& [first, second] : {std::pair{"", "inner"}, {"inner", ""}, {"a", "b"}, {"a", "a.b"}, {"a.b", "a"}}) {
    const Graph graph = chain(DType::BF16, {8, 16}, twoHalves(first, second));
    const FusionReport report = fused(graph);
    EXPECT_EQ(names(graph, report.forward), (Names{"ForwardLinearBiasActivation", "ForwardElementwiseChain"})) << first;
    EXPECT_EQ(names(graph, report.backward), (Names{"BackwardLinearBias", "BackwardElementwiseChain"})) << first;
  }
}

// TransformerEngine's test module_groups: ops O and foreign modules F, in the order O O F F O F O O O.
TEST(Sequentials, MakeTheGroupsThatTransformerEngineMakes) {
  std::vector<Link> links;
  for (const std::string path : {"", "", "f1", "f2", "", "f3", "", "", ""}) links.push_back(inside(path, link("GELU")));
  const Graph graph = chain(DType::BF16, {8, 16}, links);
  const FusionReport report = fused(graph);
  const auto sizes = [](const std::vector<FusedOperation>& list) {
    std::vector<std::size_t> found;
    for (const FusedOperation& entry : list) found.push_back(entry.nodes.size());
    return found;
  };
  EXPECT_EQ(sizes(report.forward), (std::vector<std::size_t>{2, 1, 1, 1, 1, 3}));
  EXPECT_EQ(sizes(report.backward), (std::vector<std::size_t>{2, 1, 1, 1, 1, 3}));
}

TEST(Sequentials, OneAroundEverythingChangesNothing) {
  const Graph graph = chain(DType::BF16, {8, 16}, twoHalves("all", "all"));
  EXPECT_EQ(names(graph, fused(graph).forward), Names{"ForwardLinearEpilogue"});
}

TEST(Sequentials, StopTheRulesOfTransformerEngine) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16, "fc"), inside("inner", link("Bias", "bias"))});
  const FusionReport report = fused(graph, kTe);
  EXPECT_EQ(names(graph, report.forward), (Names{"BasicLinear", "Bias"}));
  const Attempt* attempt = attemptAt(graph, report, "ForwardLinearBiasActivation", "fc");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::BrokenChain);
  EXPECT_EQ(attempt->explanation,
            "Between fc (BasicLinear) and bias (Bias) is the boundary of inner, which is a nested te.ops.Sequential; "
            "no fusion crosses it.");
  ASSERT_EQ(attempt->repairs.size(), 1U);
  EXPECT_EQ(attempt->repairs.front().label, "Switch sequential off for inner");
}

TEST(Sequentials, StopAJointRuleThatWasAskedFor) {
  const std::vector<Link> links = {link("SwiGLU", "act"), linear(16, "fc")};
  const FusionOptions asked{.switches = {.with = {"ForwardBackwardSwiGLULinear"}}};
  const Graph flat = chain(DType::BF16, {8, 32}, links);
  EXPECT_EQ(names(flat, fused(flat, asked).backward), Names{"ForwardBackwardSwiGLULinear"});
  const Graph nested = chain(DType::BF16, {8, 32}, {links[0], inside("inner", links[1])});
  EXPECT_EQ(names(nested, fused(nested, asked).backward), (Names{"SwiGLU", "BasicLinear"}));
}

TEST(Sequentials, EndAnElementwiseChainThatSaysWhyItIsNoLonger) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {link("GELU", "a"), link("SiLU", "b"), inside("s.t", link("ReLU", "c"))});
  const FusionReport report = fused(graph);
  const Attempt* attempt = attemptAt(graph, report, "ForwardElementwiseChain", "a");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->outcome, Outcome::Fused);
  EXPECT_EQ(attempt->explanation,
            "a, b are fused. Between b (SiLU) and c (ReLU) is the boundary of s.t, which is a nested "
            "te.ops.Sequential; no fusion crosses it.");
  EXPECT_EQ(attempt->repairs.size(), 1U);
}

TEST(Sequentials, NameEveryBorderThatLiesInBetween) {
  const Graph graph = chain(DType::BF16, {8, 16}, {inside("a", link("GELU", "f")), inside("b", link("SiLU", "g"))});
  const FusionReport report = fused(graph);
  const Attempt* attempt = attemptAt(graph, report, "ForwardElementwiseChain", "f");
  ASSERT_NE(attempt, nullptr);
  EXPECT_EQ(attempt->explanation,
            "Between f (GELU) and g (SiLU) is the boundary of a and b, which are each a nested te.ops.Sequential; no "
            "fusion crosses it.");
  ASSERT_EQ(attempt->repairs.size(), 1U);
  EXPECT_EQ(attempt->repairs.front().label, "Switch sequential off for a and b");
}

TEST(Sequentials, AreNotTheReasonWhereTheNextOpWouldNotFitAnyway) {
  const Graph graph = chain(DType::BF16, {8, 16}, {linear(16, "fc"), inside("inner", link("RMSNorm", "norm"))});
  for (const Attempt& attempt : fused(graph).attempts)
    EXPECT_EQ(attempt.explanation.find("border"), std::string::npos) << attempt.explanation;
}

// Delayed weight gradients.

TEST(Fuser, RefusesABackwardFusionOfAnOpWhoseWeightGradientWaits) {
  RuleCatalog rules;
  ASSERT_TRUE(rules.registerBackwardFusion(
      {.name = "BackwardExperts",
       .chain = {{.role = "experts", .operations = {"GroupedLinear"}}, {.role = "act", .operations = {"GELU"}}},
       .becomes = "experts_gelu"}));
  const Link experts = with(link("GroupedLinear", "experts"), "out_features", std::int64_t{8});
  for (const bool isDelayed : {false, true}) {
    const Graph graph = chain(DType::F32, {6, 4}, {with(experts, "delay_wgrad_compute", isDelayed), link("GELU")});
    const FusionReport report = fused(graph, {.rules = &rules});
    ASSERT_EQ(report.attempts.size(), 1U);
    EXPECT_EQ(report.attempts[0].outcome, isDelayed ? Outcome::ConditionFailed : Outcome::Fused);
    const char* const refusal =
        "experts (GroupedLinear) has delay_wgrad_compute on, so its weight gradient is computed after the rest of "
        "backward; the fusion would compute it earlier. Set delay_wgrad_compute to false.";
    EXPECT_EQ(report.attempts[0].explanation, isDelayed ? refusal : "experts, gelu1 are fused.");
  }
}

/// Each of n ops has its attempts, whose texts would have n names.
TEST(Fuser, TextsAboutALongChainStayShort) {
  const Graph graph = chain(DType::F32, {8, 16}, std::vector<Link>(300, link("GELU")));
  const FusionReport report = fused(graph);
  EXPECT_EQ(report.forward.size(), 1U);
  for (const Attempt& attempt : report.attempts)
    EXPECT_LT(attempt.explanation.size(), 1000U) << attempt.rule->name << ": " << attempt.explanation;
}

/// Counts how often ops of a chain of GELUs are compared with the steps of a rule.
std::size_t numComparisons(std::size_t numOps) {
  std::size_t number = 0;
  const auto counted = [&](const Node&) { return ++number > 0; };
  RuleCatalog rules;
  EXPECT_TRUE(rules.registerForwardFusion({.name = "Run",
                                           .chain = {{.role = "first", .accepts = counted},
                                                     {.role = "rest", .repeat = Repeat::OneOrMore, .accepts = counted}},
                                           .becomes = "elementwise",
                                           .writesBranches = true}));
  const Graph graph = chain(DType::F32, {2, 2}, std::vector<Link>(numOps, link("GELU")));
  EXPECT_EQ(fuse(graph, {.rules = &rules})->forward.size(), 1U);
  return number;
}

TEST(Fuser, ComparesEachOpOfALongChainAFewTimes) { EXPECT_LE(numComparisons(4000), 5 * numComparisons(1000)); }

/// This finishes in seconds only if nothing is quadratic; the time itself is not asserted.
TEST(Fuser, FusesAVeryLongChain) {
  const Graph graph = chain(DType::F32, {2, 2}, std::vector<Link>(100'000, link("GELU")));
  const FusionReport report = *fuse(graph);
  EXPECT_EQ(report.forward.size(), 1U);
  EXPECT_EQ(report.backward.size(), 1U);
}

}  // namespace
}  // namespace fuseline
