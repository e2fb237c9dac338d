// Attention, rotary embedding, Split and Concat on the CPU against the double-precision reference.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/ops/catalog.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/compare.h"
#include "tests/support/handed_codes.h"
#include "tests/support/pipelines.h"
#include "tests/support/recipes.h"
#include "tests/support/rule_samples.h"
#include "tests/support/run_plan.h"
#include "tests/support/structured_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

std::shared_ptr<Backend> onThreads(int threads) { return cpu::makeCpuBackend({.threads = threads}); }

/// As the reference computes it, with one thread and with more of them than there are heads.
void expectLikeReference(const OpSample& sample, DType dtype, ExecutionMode pass) {
  const Graph graph = sampleGraph(sample, dtype, pass);
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  for (const int threads : {1, 5})
    EXPECT_EQ(
        firstDifference(runPlan(graph, unfused(graph), onThreads(threads)), expected, toleranceOf(dtype).relative), "")
        << sample.label << " in " << dtypeName(dtype) << " on " << threads << " threads";
}

class StructuredOps : public ::testing::TestWithParam<const FusibleOperation*> {};

TEST_P(StructuredOps, TrainLikeTheReference) {
  for (const DType dtype : kFloatTypes)
    for (const OpSample& sample : samplesOf(*GetParam())) expectLikeReference(sample, dtype, ExecutionMode::Training);
}

TEST_P(StructuredOps, RunForwardLikeTheReference) {
  for (const DType dtype : kFloatTypes)
    for (const OpSample& sample : samplesOf(*GetParam())) expectLikeReference(sample, dtype, ExecutionMode::Inference);
}

INSTANTIATE_TEST_SUITE_P(Catalog, StructuredOps, ::testing::ValuesIn(structuredOperations()), operationName);

/// Several tiles of queries and keys, with rests of both, and heads that are no whole vectors.
TEST(Attention, OverSeveralTilesIsLikeTheReference) {
  for (const OpSample& sample :
       attentionSamples({.B = 2, .queries = 203, .keys = 203, .H = 2, .G = 2, .D = 20, .Dv = 20}))
    expectLikeReference(sample, DType::F32, ExecutionMode::Training);
}

TEST(Attention, OfHeadsOfAnySizeIsLikeTheReference) {
  for (const std::int64_t D : {1, 8, 16, 24, 64, 80, 128, 256})
    for (const DType dtype : kFloatTypes)
      expectLikeReference(attentionSample({.B = 1, .queries = 99, .keys = 99, .H = 4, .G = 2, .D = D, .Dv = D}), dtype,
                          ExecutionMode::Training);
}

/// Masked keys do not change a query's output, whatever they hold.
TEST(Attention, PropagatesNanAndInfinityLikeTheReference) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const AttentionExtents extents{.B = 1, .queries = 7, .keys = 7, .H = 2, .G = 1, .D = 4, .Dv = 4};
  for (const char* mask : {"causal", "arbitrary"}) {
    const OpSample sample = attentionSample(extents, {{"attn_mask_type", std::string(mask)}});
    const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Training);
    for (const char* name : {"x", "k", "v"})
      for (const double value : {std::nan(""), kInfinity, -kInfinity}) {
        const TensorSpec& spec = graph.value(graph.findValue(name)).spec;
        std::vector<double> values(static_cast<std::size_t>(spec.numElements()), 0.5);
        values[values.size() / 2] = value;
        const NamedTensors given = {{name, Tensor::fromDoubles(spec, values)}};
        EXPECT_EQ(firstNonFiniteDifference(runPlan(graph, unfused(graph), onThreads(1), 1, given),
                                           runPlan(graph, unfused(graph), makeReferenceBackend(), 1, given)),
                  "")
            << mask << ", " << name << " with " << value;
      }
  }
}

std::pair<std::string, TensorSpec> biasOf(const Graph& graph) {
  const Value& bias = graph.value(graph.inputs().back());
  return {bias.name, bias.spec};
}

/// The row of a query that a finite mask leaves no key attends to all of them alike. Smaller biases shift the row.
TEST(Attention, WithFiniteMasksIsLikeTheReference) {
  const AttentionExtents extents{.B = 1, .queries = 70, .keys = 70, .H = 2, .G = 1, .D = 8, .Dv = 8};
  for (const char* kind : {"post_scale_bias", "pre_scale_bias"}) {
    const OpSample sample = attentionSample(
        extents, {{"attn_mask_type", std::string("no_mask")}, {"core_attention_bias_type", std::string(kind)}});
    const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Training);
    const auto [name, spec] = biasOf(graph);
    std::vector<double> values(static_cast<std::size_t>(spec.numElements()));
    const auto rowOf = [&](std::size_t i) { return static_cast<std::int64_t>(i) / spec.shape.back() % 70; };
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = rowOf(i) % 3 == 0 ? -1e38 : rowOf(i) % 3 == 1 ? -1024.0 : 0.0;
    const NamedTensors given = {{name, Tensor::fromDoubles(spec, values)}};
    EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), onThreads(2), 1, given),
                              runPlan(graph, unfused(graph), makeReferenceBackend(), 1, given), 5e-4),
              "")
        << kind;
  }
}

/// Layers of two batch entries, whose rows alternate or not: the strides of a packed tensor.
TEST(Attention, OnPackedTensorsOfSeveralBatchEntriesIsLikeTheReference) {
  for (const char* format : {"sbhd", "bshd"})
    for (const char* mask : {"causal", "padding"})
      for (const DType dtype : kFloatTypes) {
        std::vector<Link> links = packedHeads(4, 2);
        links.erase(links.begin() + 1);  // the Reshape
        const Shape shape = format == std::string("sbhd") ? Shape{99, 2, 16} : Shape{2, 99, 16};
        links.push_back(with(rotaryOf("rope_q", "split.y"), "tensor_format", std::string(format)));
        links.push_back(with(rotaryOf("rope_k", "split.y1"), "tensor_format", std::string(format)));
        Link attention = attentionOf(4, 2, {"rope_q.y", "rope_k.y", "split.y2"});
        attention = with(attention, "qkv_format", std::string(format));
        links.push_back(with(attention, "attn_mask_type", std::string(mask)));
        const Graph graph = chain(dtype, shape, links);
        const FusionReport report = std::move(*fuse(graph, {.capabilities = capabilitiesOf(onThreads(5))}));
        ASSERT_TRUE(std::ranges::any_of(report.forward, [](const FusedOperation& entry) {
          return entry.isFused() && entry.rule->name == "ForwardBackwardSplitAttention";
        })) << toTree(graph, report);
        const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
        for (const int threads : {1, 5})
          EXPECT_EQ(firstDifference(runPlan(graph, report, onThreads(threads)), expected, toleranceOf(dtype).relative),
                    "")
              << format << ", " << mask << " in " << dtypeName(dtype) << " on " << threads << " threads";
      }
}

/// Dropout and every sum but that of dq's shares do not depend on how the work is divided.
TEST(Attention, GivesTheSameBitsOnAnyNumberOfThreads) {
  const AttentionExtents extents{.B = 2, .queries = 203, .keys = 203, .H = 4, .G = 4, .D = 16, .Dv = 16};
  for (const OpSample& sample : {attentionSample(extents), attentionSample(extents, {{"attention_dropout", 0.4}})}) {
    const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Training);
    EXPECT_EQ(runPlan(graph, unfused(graph), onThreads(1)), runPlan(graph, unfused(graph), onThreads(3)));
  }
}

/// E[y] is y without dropout; the share of dropped weights is p.
TEST(Attention, DropsTheShareThatIsAskedFor) {
  OpSample sample = attentionSample({.B = 1, .queries = 300, .keys = 300, .H = 2, .G = 2, .D = 16, .Dv = 16},
                                    {{"attn_mask_type", std::string("no_mask")}, {"attention_dropout", 0.25}});
  const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Training);
  const TensorSpec& v = graph.value(graph.findValue("v")).spec;
  const TensorSpec& x = graph.value(graph.findValue("x")).spec;
  // Equal weights and values of 1: y is the share of kept weights over 1 - p.
  const NamedTensors given = {
      {"x", Tensor::zeros(x)},
      {"v", Tensor::fromDoubles(v, std::vector<double>(static_cast<std::size_t>(v.numElements()), 1.0))}};
  const RunResults results = runPlan(graph, unfused(graph), onThreads(2), 1, given);
  double sum = 0.0;
  for (const double y : results.at("y")) sum += y;
  // 180000 weights: the deviation of the mean is 0.0014.
  EXPECT_NEAR(sum / static_cast<double>(results.at("y").size()), 1.0, 0.006);
}

/// Both quantize in the same way; a probability may round to the neighboring value.
TEST(Attention, OfFp8IsLikeTheReference) {
  Attributes fp8;
  fp8.set("fp8_dpa", true);
  const AttentionExtents extents{.B = 2, .queries = 70, .keys = 90, .H = 4, .G = 2, .D = 16, .Dv = 32};
  for (const char* const name : {"Float8CurrentScaling", "DelayedScaling"})
    for (const char* const mask : {"causal", "padding"})
      for (const DType dtype : {DType::F32, DType::BF16}) {
        // The CPU rounds dequantized values to bf16, which moves some probabilities and gradients by one step.
        const double tolerance = dtype == DType::F32 ? 0.01 : 0.05;
        const OpSample sample = attentionSample(extents, {{"attn_mask_type", std::string(mask)}});
        const Graph graph = under(recipe(name, fp8), sampleGraph(sample, dtype, ExecutionMode::Training));
        const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
        for (const int threads : {1, 5})
          EXPECT_EQ(firstDifferenceInNorm(runPlan(graph, unfused(graph), onThreads(threads)), expected, tolerance), "")
              << name << ", " << mask << " in " << dtypeName(dtype) << " on " << threads << " threads";
      }
}

/// The step that splits and rotates also quantizes, or finds the amax: the same bits, also of scales and histories.
TEST(Attention, OfFp8IsQuantizedByTheSplit) {
  for (const char* const name : {"Float8CurrentScaling", "DelayedScaling"})
    for (const bool hasRotary : {false, true})
      for (const bool hasBias : {false, true}) {
        const Graph graph = chain(DType::BF16, {700, 16}, fp8AttentionLinks(hasBias, hasRotary), fp8Attention(name));
        for (const std::shared_ptr<Backend>& backend : {onThreads(3), makeReferenceBackend()}) {
          const FusionReport report = fusedFor(graph, backend);
          ASSERT_TRUE(isQuantizedByProducer(graph, report, "attention")) << toTree(graph, report);
          const FusionReport apart = withoutFusedOperands(report);
          EXPECT_EQ(firstDifference(runPlan(graph, report, backend), runPlan(graph, apart, backend), 0.0), "")
              << name << (hasRotary ? ", rotated" : "") << (hasBias ? ", with a bias" : "");
          EXPECT_EQ(statesOfQuantizers(graph, report, backend), statesOfQuantizers(graph, apart, backend));
        }
      }
}

/// Linears and rotary embeddings quantize their own results with the scale that they share.
TEST(Attention, OfFp8IsQuantizedByLinears) {
  for (const char* const name : {"Float8CurrentScaling", "DelayedScaling"})
    for (const bool hasBias : {false, true})
      for (const LinearHeads& heads : {LinearHeads{}, LinearHeads{.hasHeads = true}, LinearHeads{.hasRotary = true},
                                       LinearHeads{.hasRotary = true, .hasHeads = true},
                                       LinearHeads{.hasRotary = true, .hasHeads = true, .hasNorms = true}}) {
        LinearHeads given = heads;
        given.hasBias = hasBias;
        const Graph graph = chain(DType::BF16, {96, 16}, fp8AttentionOfLinears(given), fp8Attention(name));
        for (const std::shared_ptr<Backend>& backend : {onThreads(3), makeReferenceBackend()}) {
          const FusionReport report = fusedFor(graph, backend);
          ASSERT_TRUE(isQuantizedByProducer(graph, report, "attention")) << toTree(graph, report);
          const FusionReport apart = withoutFusedOperandsOf(graph, report, "attention");
          EXPECT_EQ(firstDifference(runPlan(graph, report, backend), runPlan(graph, apart, backend), 0.0), "")
              << name << "\n"
              << toTree(graph, report);
          EXPECT_EQ(statesOfQuantizers(graph, report, backend), statesOfQuantizers(graph, apart, backend));
        }
      }
}

/// All three are quantized by a step of their own, as they share a scale.
TEST(Attention, OfFp8IsQuantizedApartIfAnotherOpMakesTheValues) {
  std::vector<Link> links = fp8AttentionOfLinears({.hasRotary = true});
  links.insert(links.end() - 2, link("GELU"));
  const Graph graph = chain(DType::BF16, {96, 16}, links, fp8Attention("DelayedScaling"));
  const FusionReport report = fusedFor(graph, onThreads(1));
  EXPECT_FALSE(isQuantizedByProducer(graph, report, "attention"));
  EXPECT_NE(toTree(graph, report).find("shares its scale with"), std::string::npos) << toTree(graph, report);
}

TEST(Attention, NamesSumsOfLengthsThatAreNotLegal) {
  const OpSample sample = attentionSample({}, {{"attn_mask_type", std::string("padding")}});
  const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Inference);
  const TensorSpec& spec = graph.value(graph.findValue("cu_seqlens_q")).spec;
  const NamedTensors given = {{"cu_seqlens_q", Tensor::fromDoubles(spec, std::vector<double>{0, 4, 10})}};
  try {
    runPlan(graph, unfused(graph), onThreads(1), 1, given);
    FAIL() << "no refusal";
  } catch (const std::exception& failure) {
    EXPECT_NE(std::string(failure.what()).find("cu_seqlens_q is [0, 4, 10]; a sequence has at most 5 tokens."),
              std::string::npos)
        << failure.what();
  }
}

}  // namespace
}  // namespace fuseline::testing
