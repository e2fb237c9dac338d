// Norms that are quantized in one pass, by clusters of blocks: the same bits as in two passes.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm/norm_cluster.h"
#include "tests/support/simt/gpu_profiles.h"
#include "tests/support/simt/simt.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

using device::CopyKind;
using device::Element;
using device::FloatCode;
using device::QuantizedOutputs;

constexpr ClusterLimits kHopper = {.blocks = 16, .sharedBytes = std::size_t{227} << 10U};

struct NormCase {
  NormKind kind = NormKind::Rms;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Element x = Element::BF16;
  Element y = Element::BF16;
  Element parameter = Element::BF16;
  bool hasAddend = false;
  std::size_t numPairs = 1;
  int maxBlocks = 16;
};

std::string describe(const NormCase& norm, CopyKind copies) {
  return fmt::format("{} x {}, norm {}, elements {} {} {}, {}copies {}, blocks {}", norm.rows, norm.cols,
                     static_cast<int>(norm.kind), static_cast<int>(norm.x), static_cast<int>(norm.y),
                     static_cast<int>(norm.parameter), norm.hasAddend ? "a sum, " : "", static_cast<int>(copies),
                     norm.maxBlocks);
}

using Bytes = std::vector<std::uint64_t>;  // aligned for packets

Bytes memory(std::int64_t bytes) { return Bytes(static_cast<std::size_t>(bytes + 7) / 8 + 1, 0x5555555555555555U); }

Bytes numbers(Element element, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0.3F, 2.0F);
  Bytes bytes = memory(count * 4);
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = draw(random);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    if (element == Element::F32) {
      std::memcpy(reinterpret_cast<char*>(bytes.data()) + i * 4, &bits, 4);
    } else {
      // The upper half of a float32 is a BF16, and as an F16 some other number, here without its infinities.
      const auto half = static_cast<std::uint16_t>(element == Element::BF16 ? bits >> 16U : bits >> 16U & 0xbfffU);
      std::memcpy(reinterpret_cast<char*>(bytes.data()) + i * 2, &half, 2);
    }
  }
  return bytes;
}

/// All that a norm writes.
struct Results {
  Bytes y, sum, mean, rstd;
  struct Pair {
    Bytes rowCodes, rowScales, columnCodes, columnScales;
    float amax = 0.0F;
    bool operator==(const Pair&) const = default;
  };
  std::vector<Pair> pairs;
  bool operator==(const Results&) const = default;
};

/// Scales of blocks are in rows.
device::CodedCopy codedCopy(CopyKind kind, bool isColumnwise, const NormCase& norm, Bytes& codes, Bytes& scales,
                            FloatCode code) {
  const std::int64_t across = kind == CopyKind::Float8Line ? 128 : 32;
  const bool isMx = kind == CopyKind::MxLine;
  codes = memory(norm.rows * norm.cols);
  scales = memory((norm.rows + 4) * norm.cols);
  device::CodedCopy copy{.codes = reinterpret_cast<std::uint8_t*>(codes.data()),
                         .scales = scales.data(),
                         .code = code,
                         .isTransposed = isColumnwise && !isMx,
                         .scaleRowStride = isColumnwise ? norm.cols : (norm.cols + across - 1) / across,
                         .scaleColStride = 1};
  copy.rule.isPowerOfTwo = kind == CopyKind::Float8Line;
  return copy;
}

/// launch(norm, quantized outputs)
template <class Launch>
Results resultsOf(const NormCase& norm, CopyKind kind, const Launch& launch) {
  const Bytes x = numbers(norm.x, norm.rows * norm.cols, 1);
  const Bytes addend = numbers(norm.x, norm.rows * norm.cols, 2);
  const Bytes gamma = numbers(norm.parameter, norm.cols, 3);
  const Bytes beta = numbers(norm.parameter, norm.cols, 4);
  const float scale = 3.0F;
  Results results{.y = memory(norm.rows * norm.cols * 4),
                  .sum = memory(norm.rows * norm.cols * 4),
                  .mean = memory(norm.rows * 4),
                  .rstd = memory(norm.rows * 4),
                  .pairs = std::vector<Results::Pair>(norm.numPairs)};
  NormForward forward{.problem = {.kind = norm.kind,
                                  .rows = norm.rows,
                                  .cols = norm.cols,
                                  .rowOfX = norm.cols,
                                  .x = norm.x,
                                  .y = norm.y,
                                  .parameter = norm.parameter},
                      .x = x.data(),
                      .y = results.y.data(),
                      .rstd = reinterpret_cast<float*>(results.rstd.data())};
  if (norm.hasAddend)
    forward.addend = {.left = norm.x, .right = norm.x, .rightData = addend.data(), .sum = results.sum.data()};
  if (norm.kind != NormKind::L2) forward.gamma = gamma.data();
  if (norm.kind == NormKind::Layer) {
    forward.beta = beta.data();
    forward.mean = reinterpret_cast<float*>(results.mean.data());
  }
  QuantizedOutputs outputs{.numPairs = static_cast<int>(norm.numPairs), .kind = kind};
  outputs.isUnrounded = kind == CopyKind::Tensor;
  for (std::size_t i = 0; i < norm.numPairs; ++i) {
    Results::Pair& pair = results.pairs[i];
    const FloatCode code = i == 0 ? FloatCode::E4M3 : FloatCode::E5M2;
    outputs.pairs[i] = {.rowwise = codedCopy(kind, false, norm, pair.rowCodes, pair.rowScales, code),
                        .columnwise = codedCopy(kind, true, norm, pair.columnCodes, pair.columnScales, code),
                        .scale = &scale};
    if (kind == CopyKind::Tensor) outputs.pairs[i].amax = &pair.amax;
  }
  launch(forward, outputs);
  return results;
}

Results inOnePass(const NormCase& norm, CopyKind kind) {
  return resultsOf(norm, kind, [&](const NormForward& forward, const QuantizedOutputs& outputs) {
    const auto cluster = normClusterOf(norm.cols, isNarrowNorm(forward.problem), {kind, norm.numPairs},
                                       {.blocks = norm.maxBlocks, .sharedBytes = kHopper.sharedBytes});
    ASSERT_TRUE(cluster);
    launchNormForwardClusters(forward, outputs, *cluster, nullptr);
  });
}

Results inTwoPasses(const NormCase& norm, CopyKind kind) {
  return resultsOf(norm, kind, [](const NormForward& forward, const QuantizedOutputs& outputs) {
    launchNormForwardTiles(forward, outputs, nullptr);
  });
}

class NormClusters : public ::testing::TestWithParam<CopyKind> {
 protected:
  static void expectSameBits(const std::vector<NormCase>& cases) {
    for (const NormCase& norm : cases) {
      const Results expected = inTwoPasses(norm, GetParam());
      EXPECT_TRUE(inOnePass(norm, GetParam()) == expected) << describe(norm, GetParam());
    }
  }
};

/// A warp, and blocks of several sizes, have a row in the first of two passes; the last tiles may be part of one.
TEST_P(NormClusters, GiveTheSameBitsAtEveryWidth) {
  expectSameBits({{NormKind::Rms, 5, 8},
                  {NormKind::Layer, 130, 136},
                  {NormKind::Rms, 128, 512},
                  {NormKind::Rms, 3, 520},
                  {NormKind::Layer, 257, 1032},
                  {NormKind::Rms, 40, 2048},
                  {NormKind::Layer, 7, 4096},
                  {NormKind::Rms, 2, 5128}});
}

TEST_P(NormClusters, GiveTheSameBitsInEveryType) {
  using enum Element;
  for (const NormKind kind : {NormKind::Rms, NormKind::Layer, NormKind::L2})
    expectSameBits({{kind, 70, 392, F32, F32, F32},
                    {kind, 70, 392, F16, F16, F16},
                    {kind, 70, 392, F32, BF16, F32},
                    {kind, 70, 392, BF16, BF16, F32},
                    {kind, 70, 392, F32, F16, BF16}});
}

TEST_P(NormClusters, GiveTheSameBitsOfSumsAndForSeveralConsumers) {
  NormCase norm{.kind = NormKind::Layer, .rows = 150, .cols = 264, .hasAddend = true, .numPairs = 2};
  expectSameBits({norm});
  norm.x = norm.y = norm.parameter = Element::F32;
  expectSameBits({norm});
}

/// A block then has several sums of a row.
TEST_P(NormClusters, GiveTheSameBitsInFewerBlocks) {
  expectSameBits({{.kind = NormKind::Layer, .rows = 20, .cols = 1160, .maxBlocks = 2},
                  {.kind = NormKind::Rms, .rows = 140, .cols = 1032, .maxBlocks = 4}});
}

/// Blocks and threads wait for each other where they must.
TEST_P(NormClusters, DoNotDependOnTheOrderOfTurns) {
  const NormCase norm{.kind = NormKind::Layer, .rows = 260, .cols = 520};
  const Results expected = inOnePass(norm, GetParam());
  for (const simt::Turns turns : {simt::Turns::Descending, simt::Turns::Random})
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const simt::TurnsInScope scope(turns, seed);
      EXPECT_TRUE(inOnePass(norm, GetParam()) == expected);
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, NormClusters,
                         ::testing::Values(CopyKind::Tensor, CopyKind::Float8Line, CopyKind::MxLine),
                         [](const auto& test) {
                           return test.param == CopyKind::Tensor ? "Tensor"
                                                                 : (test.param == CopyKind::MxLine ? "Mx" : "Float8");
                         });

std::optional<NormCluster> narrowClusterOn(ComputeCapability capability, std::int64_t cols) {
  return normClusterOf(cols, true, {.kind = CopyKind::Float8Line},
                       clusterLimitsOf(capability, simt::sharedBytesOf(capability)));
}

/// A multiprocessor has 228 KB, of which every block takes 1 KB besides its own.
TEST(NormClusterShape, HasTwoBlocksOnAMultiprocessorForLlamas) {
  const auto cluster = narrowClusterOn({9, 0}, 4096);
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->blocks, 16);
  EXPECT_EQ(cluster->tiles, 2);
  EXPECT_LE(cluster->sharedBytes, (228 / 2 - 1) << 10);
}

TEST(NormClusterShape, IsOfGpusWithClustersAndEnoughMemory) {
  EXPECT_FALSE(narrowClusterOn({8, 0}, 2048));
  EXPECT_FALSE(narrowClusterOn({8, 9}, 2048));
  EXPECT_EQ(narrowClusterOn({9, 0}, 8192)->tiles, 4);
  EXPECT_FALSE(narrowClusterOn({9, 0}, 16384));  // 256 KB of a block
  EXPECT_FALSE(narrowClusterOn({9, 0}, 16392));  // rows that no block holds
  EXPECT_EQ(narrowClusterOn({12, 0}, 2048)->blocks, 8);
  EXPECT_FALSE(narrowClusterOn({12, 0}, 4096));  // four tiles of 32 KB, and 99 KB of memory
  EXPECT_FALSE(narrowClusterOn({9, 0}, 1001));
}

TEST(NormClusterShape, IsOfScalesOfTensorsAndLines) {
  EXPECT_TRUE(normClusterOf(1024, true, {.kind = CopyKind::MxLine}, kHopper));
  EXPECT_FALSE(normClusterOf(1024, true, {.kind = CopyKind::MxSquare}, kHopper));
  EXPECT_FALSE(normClusterOf(1024, true, {.kind = CopyKind::Float8Square}, kHopper));
}

}  // namespace
}  // namespace fuseline::cuda
