// Attention, rotary embedding, Split and Concat on the CUDA kernels against the double-precision reference.
// Compiled twice: for the SIMT harness and for a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/ops/catalog.h"
#include "core/plan/plan.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "tests/support/compare.h"
#include "tests/support/cuda_test_backend.h"
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

/// Skips where there is no GPU, and this is not the harness.
class OnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto backend = cudaTestBackend(); !backend) GTEST_SKIP() << backend.error().message;
  }
};

/// Probabilities and gradients of scores are rounded before the products that read them, as in cuDNN and flash-attn,
/// and so is y, of which backward takes sums: as often as a chain, for which f16's tolerance is too tight.
double toleranceFor(const OpSample& sample, DType dtype) {
  if (sample.operation->name != "DotProductAttention" || dtype == DType::F32) return toleranceOf(dtype).relative;
  return (dtype == DType::F16 ? 8.0 : 4.0) * toleranceOf(dtype).relative;
}

void expectLikeReference(const OpSample& sample, DType dtype, ExecutionMode pass) {
  const Graph graph = sampleGraph(sample, dtype, pass);
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), *cudaTestBackend()), expected, toleranceFor(sample, dtype)),
            "")
      << sample.label << " in " << dtypeName(dtype);
}

class CudaStructuredOps : public OnCuda, public ::testing::WithParamInterface<const FusibleOperation*> {};

TEST_P(CudaStructuredOps, TrainLikeTheReference) {
  for (const DType dtype : kFloatTypes)
    for (const OpSample& sample : samplesOf(*GetParam())) expectLikeReference(sample, dtype, ExecutionMode::Training);
}

TEST_P(CudaStructuredOps, RunForwardLikeTheReference) {
  for (const DType dtype : kFloatTypes)
    for (const OpSample& sample : samplesOf(*GetParam())) expectLikeReference(sample, dtype, ExecutionMode::Inference);
}

INSTANTIATE_TEST_SUITE_P(Catalog, CudaStructuredOps, ::testing::ValuesIn(structuredOperations()), operationName);

class CudaRotary : public OnCuda {};

Graph rotaryGraph(const Shape& x, DType dtype, const AttributeValues& given) {
  OpSample sample{.label = "rotary", .operation = unowned(*builtinOperations().find("RotaryPositionEmbedding"))};
  sample.attributes = defaultAttributes(*sample.operation);
  sample.attributes.set("dim", x.back());
  for (const auto& [name, value] : given) sample.attributes.set(name, value);
  sample.inputs = {{DType::F32, x}};
  return sampleGraph(sample, dtype, ExecutionMode::Training);
}

/// Packets and single pairs, of both orders; more pairs than go with one launch; parts that do not turn.
TEST_F(CudaRotary, OfHeadsOfAnySizeIsLikeTheReference) {
  for (const DType dtype : kFloatTypes)
    for (const bool isInterleaved : {false, true})
      for (const std::int64_t channels : {2, 6, 16, 24, 64, 128, 516, 1040})
        for (const double percent : {1.0, 0.5}) {
          if (static_cast<std::int64_t>(static_cast<double>(channels) * percent) % 2 != 0) continue;
          const Graph graph =
              rotaryGraph({3, 2, 5, channels}, dtype, {{"interleaved", isInterleaved}, {"rotary_percent", percent}});
          EXPECT_EQ(
              firstDifference(runPlan(graph, unfused(graph), *cudaTestBackend()),
                              runPlan(graph, unfused(graph), makeReferenceBackend()), toleranceOf(dtype).relative),
              "")
              << toString(graph);
        }
}

/// In float32 the angle itself would be off by more than a whole tolerance here.
TEST_F(CudaRotary, IsAsExactAtAMillionTokensAsAtTheFirst) {
  const Graph graph = rotaryGraph({5, 1, 1, 64}, DType::F32, {{"offset", std::int64_t{1'048'573}}});
  EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), *cudaTestBackend()),
                            runPlan(graph, unfused(graph), makeReferenceBackend()), 1e-6, 0.0),
            "");
}

/// Widths of several blocks, and of no whole packets; rows of several groups.
TEST_F(CudaRotary, OfASplitSumsTheBiasGradient) {
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{2400, 16, 16}, {32, 16, 7}})
    for (const DType dtype : kFloatTypes) {
      const std::int64_t width = sizes[0] + sizes[1] + sizes[2];
      const std::vector<Link> links = {link("Bias", "bias"), with(link("Split", "split"), "sizes", sizes),
                                       rotaryOf("rope_q", "split.y"), rotaryOf("rope_k", "split.y1")};
      const Graph graph = chain(dtype, {37, 1, width}, links, {.extraOutputs = {"rope_q.y", "split.y2"}});
      const std::shared_ptr<Backend> backend = *cudaTestBackend();
      const FusionReport report = fusedFor(graph, backend);
      ASSERT_TRUE(std::ranges::any_of(report.backward, [](const FusedOperation& entry) {
        return entry.isFused() && entry.rule->name == "BackwardBiasSplitRotary";
      })) << toTree(graph, report);
      const RunResults results = runPlan(graph, report, backend);
      EXPECT_EQ(
          firstDifference(results, runPlan(graph, unfused(graph), makeReferenceBackend()), toleranceOf(dtype).relative),
          "")
          << width << " columns in " << dtypeName(dtype);
      EXPECT_EQ(results, runPlan(graph, report, backend));
    }
}

class CudaAttention : public OnCuda {};

/// The way that each step of a plan says it is computed.
std::string waysOf(const Graph& graph) {
  const Plan plan = makePlan(graph, unfused(graph));
  const auto backend = *cudaTestBackend();
  const auto executor = std::move(*Executor::create(backend, graph, plan, *makeBindings(graph, 1)));
  EXPECT_TRUE(executor->run());
  std::string ways;
  for (std::size_t step = 0; step < plan.steps.size(); ++step)
    for (const std::string& way : executor->ways(step)) ways += way + "\n";
  return ways;
}

/// Queries, keys, values and dy are quantized; probabilities keep their precision.
TEST_F(CudaAttention, OfFp8IsDequantizedFirst) {
  Attributes fp8;
  fp8.set("fp8_dpa", true);
  const OpSample sample = attentionSample({.B = 2, .queries = 20, .keys = 24, .H = 4, .G = 2, .D = 16, .Dv = 32});
  for (const char* const name : {"Float8CurrentScaling", "DelayedScaling"}) {
    const Graph graph = under(recipe(name, fp8), sampleGraph(sample, DType::BF16, ExecutionMode::Training));
    EXPECT_EQ(firstDifferenceInNorm(runPlan(graph, unfused(graph), *cudaTestBackend()),
                                    runPlan(graph, unfused(graph), makeReferenceBackend()), 0.1),
              "")
        << name;
  }
}

/// The step that splits and rotates also quantizes, or finds the amax: the same bits, also of scales and histories.
TEST_F(CudaAttention, OfFp8IsQuantizedByTheSplit) {
  for (const char* const name : {"Float8CurrentScaling", "DelayedScaling"})
    for (const bool hasRotary : {false, true})
      for (const bool hasBias : {false, true}) {
        const Graph graph = chain(DType::BF16, {48, 16}, fp8AttentionLinks(hasBias, hasRotary), fp8Attention(name));
        const std::shared_ptr<Backend> backend = *cudaTestBackend();
        const FusionReport report = fusedFor(graph, backend);
        ASSERT_TRUE(isQuantizedByProducer(graph, report, "attention")) << toTree(graph, report);
        EXPECT_EQ(firstDifference(runPlan(graph, report, backend),
                                  runPlan(graph, withoutFusedOperands(report), backend), 0.0),
                  "")
            << name << (hasRotary ? ", rotated" : "") << (hasBias ? ", with a bias" : "");
        EXPECT_EQ(statesOfQuantizers(graph, report, backend),
                  statesOfQuantizers(graph, withoutFusedOperands(report), backend));
      }
}

/// Rotary embeddings quantize queries and keys; values take a pass after their GEMM.
TEST_F(CudaAttention, OfFp8IsQuantizedByLinears) {
  for (const char* const name : {"Float8CurrentScaling", "DelayedScaling"})
    for (const bool hasBias : {false, true})
      for (const bool hasHeads : {false, true}) {
        const LinearHeads heads{.hasBias = hasBias, .hasRotary = true, .hasHeads = hasHeads, .hasNorms = hasHeads};
        const Graph graph = chain(DType::BF16, {48, 16}, fp8AttentionOfLinears(heads), fp8Attention(name));
        const std::shared_ptr<Backend> backend = *cudaTestBackend();
        const FusionReport report = fusedFor(graph, backend);
        ASSERT_TRUE(isQuantizedByProducer(graph, report, "attention")) << toTree(graph, report);
        const FusionReport apart = withoutFusedOperandsOf(graph, report, "attention");
        EXPECT_EQ(firstDifference(runPlan(graph, report, backend), runPlan(graph, apart, backend), 0.0), "")
            << name << (hasHeads ? ", normalized heads" : "") << (hasBias ? ", with a bias" : "");
        EXPECT_EQ(statesOfQuantizers(graph, report, backend), statesOfQuantizers(graph, apart, backend));
      }
}

/// No kernel that turns gradients back quantizes them, or finds their amax.
TEST_F(CudaAttention, GradientsOfRotaryEmbeddingsAreQuantizedApart) {
  std::vector<Link> links = packedHeads(4, 2);
  links.front() = with(std::move(links.front()), "bias", true);
  links.push_back(rotaryOf("rope_q", "split.y"));
  links.push_back(rotaryOf("rope_k", "split.y1"));
  const Graph graph =
      chain(DType::BF16, {48, 16}, links, {.extraOutputs = {"rope_q.y", "split.y2"}, .recipe = "Float8CurrentScaling"});
  const std::shared_ptr<Backend> backend = *cudaTestBackend();
  const FusionReport report = fusedFor(graph, backend);
  EXPECT_EQ(
      firstDifference(runPlan(graph, report, backend), runPlan(graph, withoutFusedOperands(report), backend), 0.0), "")
      << toTree(graph, report);
}

/// Where cuDNN writes bf16 from FP8: Blackwell, and the harness.
TEST_F(CudaAttention, Fp8AsOneGraphIsLikeTheReference) {
  using List = std::vector<std::int64_t>;
  Attributes fp8;
  fp8.set("fp8_dpa", true);
  const AttentionExtents extents{.B = 2, .queries = 128, .keys = 128, .H = 4, .G = 2, .D = 16, .Dv = 32};
  for (const AttributeValues& given : {AttributeValues{}, AttributeValues{{"window_size", List{7, 0}}},
                                       AttributeValues{{"attn_mask_type", std::string("no_mask")}}}) {
    const Graph graph = under(recipe("Float8CurrentScaling", fp8),
                              sampleGraph(attentionSample(extents, given), DType::BF16, ExecutionMode::Inference));
    const std::string ways = waysOf(graph);
    if (ways.find("FP8 attention by cuDNN") == std::string::npos) GTEST_SKIP() << ways;
    EXPECT_EQ(firstDifferenceInNorm(runPlan(graph, unfused(graph), *cudaTestBackend()),
                                    runPlan(graph, unfused(graph), makeReferenceBackend()), 0.01),
              "");
  }
}

/// On the harness, where scores get little room: some heads or some queries at a time, with a rest.
TEST_F(CudaAttention, InSeveralPassesIsLikeTheReference) {
  for (const OpSample& sample : attentionSamples({.B = 1, .queries = 50, .keys = 50, .H = 2, .G = 2, .D = 4, .Dv = 4}))
    expectLikeReference(sample, DType::F32, ExecutionMode::Training);
}

TEST_F(CudaAttention, OfHeadsOfAnySizeIsLikeTheReference) {
  for (const std::int64_t D : {1, 8, 24, 64, 128, 256})
    for (const DType dtype : kFloatTypes)
      expectLikeReference(attentionSample({.B = 1, .queries = 19, .keys = 19, .H = 4, .G = 2, .D = D, .Dv = D}), dtype,
                          ExecutionMode::Training);
}

/// Later tokens are not seen, whatever they are; a NaN stays in the rows that see it.
TEST_F(CudaAttention, PropagatesNanAndInfinityLikeTheReference) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const OpSample sample = attentionSample({.B = 1, .queries = 7, .keys = 7, .H = 2, .G = 1, .D = 4, .Dv = 4});
  for (const char* name : {"x", "k", "v"})
    for (const double value : {std::nan(""), kInfinity, -kInfinity}) {
      // Gradients of keys are sums over queries, where one that is not finite stays.
      const ExecutionMode pass = name == std::string("x") ? ExecutionMode::Inference : ExecutionMode::Training;
      const Graph graph = sampleGraph(sample, DType::F32, pass);
      const TensorSpec& spec = graph.value(graph.findValue(name)).spec;
      std::vector<double> values(static_cast<std::size_t>(spec.numElements()), 0.5);
      values[values.size() / 2] = value;
      const NamedTensors given = {{name, Tensor::fromDoubles(spec, values)}};
      EXPECT_EQ(firstNonFiniteDifference(runPlan(graph, unfused(graph), *cudaTestBackend(), 1, given),
                                         runPlan(graph, unfused(graph), makeReferenceBackend(), 1, given)),
                "")
          << name << " with " << value;
    }
}

TEST_F(CudaAttention, GivesTheSameBitsInEveryRun) {
  const OpSample sample = attentionSample({.B = 2, .queries = 50, .keys = 50, .H = 4, .G = 2, .D = 8, .Dv = 8},
                                          {{"attention_dropout", 0.4}});
  const Graph graph = sampleGraph(sample, DType::BF16, ExecutionMode::Training);
  EXPECT_EQ(runPlan(graph, unfused(graph), *cudaTestBackend()), runPlan(graph, unfused(graph), *cudaTestBackend()));
}

/// Sequences of several lengths, some empty, and rows that see no key.
void appendSequences(std::vector<OpSample>& samples) {
  using List = std::vector<std::int64_t>;
  const AttentionExtents extents{.B = 3, .queries = 20, .keys = 24, .H = 4, .G = 2, .D = 16, .Dv = 32};
  for (const char* mask : {"padding", "padding_causal", "padding_causal_bottom_right"})
    for (const char* format : {"sbhd", "bshd", "thd"})
      for (const bool hasWindow : {false, true}) {
        AttributeValues given = {{"attn_mask_type", std::string(mask)}, {"qkv_format", std::string(format)}};
        if (hasWindow) given.emplace_back("window_size", mask == std::string("padding") ? List{3, 2} : List{3, 0});
        samples.push_back(attentionSample(extents, given));
      }
}

/// Numbers of tokens that cuDNN's attention takes: it, or the graph that it would run.
std::vector<OpSample> fusedSamples() {
  using List = std::vector<std::int64_t>;
  const AttentionExtents extents{.B = 2, .queries = 128, .keys = 128, .H = 2, .G = 2, .D = 8, .Dv = 8};
  AttentionExtents shared = extents;
  shared.H = 4;
  AttentionExtents longer = extents;
  longer.queries = 64;
  std::vector<OpSample> samples;
  for (const char* mask : {"no_mask", "causal", "causal_bottom_right"})
    for (const AttentionExtents& each : {extents, shared, longer})
      samples.push_back(attentionSample(each, {{"attn_mask_type", std::string(mask)}}));
  samples.push_back(attentionSample(extents, {{"window_size", List{7, 0}}}));
  samples.push_back(
      attentionSample(longer, {{"attn_mask_type", std::string("causal_bottom_right")}, {"window_size", List{7, 0}}}));
  samples.push_back(attentionSample(longer, {{"attn_mask_type", std::string("no_mask")}, {"window_size", List{5, 3}}}));
  samples.push_back(attentionSample(extents, {{"qkv_format", std::string("bshd")}, {"softmax_scale", 0.7}}));
  AttentionExtents odd = longer;
  odd.queries = 20;
  odd.keys = 67;
  for (const char* mask : {"no_mask", "causal", "causal_bottom_right"})
    samples.push_back(attentionSample(odd, {{"attn_mask_type", std::string(mask)}}));
  appendSequences(samples);
  return samples;
}

TEST_F(CudaAttention, AsOneGraphIsLikeTheReference) {
  for (const OpSample& sample : fusedSamples())
    for (const DType dtype : {DType::BF16, DType::F16}) {
      expectLikeReference(sample, dtype, ExecutionMode::Training);
      expectLikeReference(sample, dtype, ExecutionMode::Inference);
    }
}

TEST_F(CudaAttention, OfSequencesIsOneGraph) {
  std::vector<OpSample> samples;
  appendSequences(samples);
  for (const OpSample& sample : samples) {
    const std::string ways = waysOf(sampleGraph(sample, DType::BF16, ExecutionMode::Training));
    EXPECT_EQ(ways.find("not used"), std::string::npos) << sample.label << ": " << ways;
  }
}

/// Sequences without queries or keys, rows that see no key, and tokens that are in no sequence.
TEST_F(CudaAttention, AsOneGraphOfUnevenSequencesIsLikeTheReference) {
  const AttentionExtents extents{.B = 3, .queries = 20, .keys = 24, .H = 4, .G = 2, .D = 16, .Dv = 32};
  for (const char* format : {"bshd", "thd"})
    for (const char* mask : {"padding", "padding_causal", "padding_causal_bottom_right"}) {
      const bool isThd = format == std::string("thd");
      const AttributeValues given = {{"attn_mask_type", std::string(mask)}, {"qkv_format", std::string(format)}};
      const Graph graph = sampleGraph(attentionSample(extents, given), DType::BF16, ExecutionMode::Training);
      const auto sums = [&](const char* name, std::vector<double> values) {
        return std::pair(std::string(name), Tensor::fromDoubles(graph.value(graph.findValue(name)).spec, values));
      };
      const NamedTensors lengths = {
          sums("cu_seqlens_q", isThd ? std::vector<double>{0, 9, 9, 16} : std::vector<double>{0, 20, 27, 27}),
          sums("cu_seqlens_kv", isThd ? std::vector<double>{0, 5, 17, 17} : std::vector<double>{0, 5, 5, 29})};
      EXPECT_EQ(firstDifference(runPlan(graph, unfused(graph), *cudaTestBackend(), 1, lengths),
                                runPlan(graph, unfused(graph), makeReferenceBackend(), 1, lengths),
                                4.0 * toleranceOf(DType::BF16).relative),
                "")
          << format << " " << mask;
    }
}

/// Columns of one tensor, by strides, in products and in graphs.
TEST_F(CudaAttention, OnPackedTensorsIsLikeTheReference) {
  for (const char* format : {"sbhd", "bshd"})
    for (const std::int64_t groups : {1, 4})
      for (const std::int64_t tokens : {19, 128})
        for (const DType dtype : kFloatTypes) {
          std::vector<Link> links = packedHeads(4, groups);
          links.erase(links.begin() + 1);  // the Reshape
          links.push_back(
              with(attentionOf(4, groups, {"split.y", "split.y1", "split.y2"}), "qkv_format", std::string(format)));
          const bool isTokenFirst = format == std::string("sbhd");
          const Shape shape = {isTokenFirst ? tokens : 2, isTokenFirst ? 2 : tokens, 16};
          const Graph graph = chain(dtype, shape, links);
          const FusionReport report = std::move(*fuse(graph, {.capabilities = capabilitiesOf(*cudaTestBackend())}));
          ASSERT_TRUE(std::ranges::any_of(report.forward, [](const FusedOperation& entry) {
            return entry.isFused() && entry.rule->name == "ForwardBackwardSplitAttention";
          })) << toTree(graph, report);
          EXPECT_EQ(firstDifference(runPlan(graph, report, *cudaTestBackend()),
                                    runPlan(graph, unfused(graph), makeReferenceBackend()),
                                    (dtype == DType::F32   ? 1.0
                                     : dtype == DType::F16 ? 8.0
                                                           : 4.0) *
                                        toleranceOf(dtype).relative),
                    "")
              << format << ", " << groups << " groups, " << tokens << " tokens in " << dtypeName(dtype);
        }
}

/// The same of sequences one after another.
TEST_F(CudaAttention, OnPackedSequencesIsLikeTheReference) {
  for (const std::int64_t groups : {1, 2}) {
    std::vector<Link> links = packedHeads(4, 2 * groups);  // as 2 heads of 16 channels
    links.erase(links.begin() + 1);                        // the Reshape
    Link attention =
        with(attentionOf(2, groups, {"split.y", "split.y1", "split.y2"}), "kv_channels", std::vector<std::int64_t>{16});
    attention = with(std::move(attention), "qkv_format", std::string("thd"));
    links.push_back(with(std::move(attention), "attn_mask_type", std::string("padding_causal")));
    const Graph graph = chain(DType::BF16, {40, 16}, links);
    const FusionReport report = fusedFor(graph, *cudaTestBackend());
    ASSERT_TRUE(std::ranges::any_of(report.forward, [](const FusedOperation& entry) {
      return entry.isFused() && entry.rule->name == "ForwardBackwardSplitAttention";
    })) << toTree(graph, report);
    EXPECT_EQ(firstDifference(runPlan(graph, report, *cudaTestBackend()),
                              runPlan(graph, unfused(graph), makeReferenceBackend()),
                              4.0 * toleranceOf(DType::BF16).relative),
              "")
        << groups << " groups";
  }
}

/// In place of a test of the values: that they were computed that way, or why not.
TEST_F(CudaAttention, SaysHowItIsComputed) {
  const AttentionExtents extents{.B = 1, .queries = 128, .keys = 128, .H = 2, .G = 2, .D = 8, .Dv = 8};
  const auto waysIn = [&](DType dtype, const AttributeValues& given) {
    return waysOf(sampleGraph(attentionSample(extents, given), dtype, ExecutionMode::Training));
  };
  EXPECT_NE(waysIn(DType::F32, {}).find("cuDNN attention is not used for float32"), std::string::npos);
  EXPECT_NE(waysIn(DType::BF16, {{"softcap", 2.0}}).find("cuDNN attention is not used with softcap"),
            std::string::npos);
  const std::string fused = waysIn(DType::BF16, {});
  if (fused.find("attention by cuDNN") == std::string::npos) GTEST_SKIP() << fused;
  EXPECT_NE(fused.find("its last bits may vary"), std::string::npos) << fused;
}

void expectRefusalOfSums(const OpSample& sample, const char* name, const std::string& sentence) {
  const Graph graph = sampleGraph(sample, DType::F32, ExecutionMode::Inference);
  const TensorSpec& spec = graph.value(graph.findValue(name)).spec;
  const NamedTensors given = {{name, Tensor::fromDoubles(spec, std::vector<double>{0, 4, 10})}};
  try {
    runPlan(graph, unfused(graph), *cudaTestBackend(), 1, given);
    FAIL() << "no refusal";
  } catch (const std::exception& failure) {
    EXPECT_NE(std::string(failure.what()).find(sentence), std::string::npos) << failure.what();
  }
}

TEST_F(CudaAttention, NamesSumsOfLengthsThatAreNotLegal) {
  expectRefusalOfSums(attentionSample({}, {{"attn_mask_type", std::string("padding")}}), "cu_seqlens_q",
                      "cu_seqlens_q is [0, 4, 10]; a sequence has at most 5 tokens.");
  for (const OpSample& sample : samplesOf(*builtinOperations().find("RotaryPositionEmbedding")))
    if (sample.label.find("thd") != std::string::npos)
      expectRefusalOfSums(sample, "cu_seqlens", "cu_seqlens is [0, 4, 10]; there are only 9 tokens.");
}

}  // namespace
}  // namespace fuseline::testing
