// Which epilogues can be described to cuBLASLt, by the rules of cublasLt.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemm_epilogue.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

constexpr GemmProblem kPlain{.m = 16, .n = 24, .k = 32};

GemmProblem activated(GemmActivation activation) {
  GemmProblem problem = kPlain;
  problem.activation = activation;
  return problem;
}

GemmProblem withBiasGrad(DType type) {
  GemmProblem problem = kPlain;
  problem.biasGradType = type;
  return problem;
}

GemmProblem withGeluGrad() {
  GemmProblem problem = kPlain;
  problem.hasGeluGrad = true;
  return problem;
}

/// The sentence, or nothing where it fits.
std::string refusal(const GemmProblem& problem) {
  const Verdict fits = fitsEpilogue(problem);
  return fits ? "" : fits.reason();
}

TEST(GemmEpilogue, FitsWhereTheLibraryHasAWordForIt) {
  GemmProblem biased = activated(GemmActivation::Gelu);
  biased.hasBias = biased.hasAddend = biased.hasPreActivation = true;
  for (const GemmProblem& problem : {kPlain, activated(GemmActivation::Relu), activated(GemmActivation::Gelu), biased,
                                     withBiasGrad(DType::F32), withGeluGrad()})
    EXPECT_EQ(refusal(problem), "");
}

TEST(GemmEpilogue, AddsNoBiasThatBeginsAnywhere) {
  GemmProblem problem = kPlain;
  problem.alignmentBytes = 2;
  EXPECT_EQ(refusal(problem), "");
  problem.hasBias = true;
  EXPECT_NE(refusal(problem).find("a multiple of 2 bytes"), std::string::npos) << refusal(problem);
}

TEST(GemmEpilogue, WritesOnlyTheInputOfGelu) {
  GemmProblem problem = activated(GemmActivation::Relu);
  problem.hasPreActivation = true;
  EXPECT_NE(refusal(problem).find("only one bit per element"), std::string::npos) << refusal(problem);
}

TEST(GemmEpilogue, WritesTheInputOfGeluInRowsOfEights) {
  GemmProblem problem = activated(GemmActivation::Gelu);
  problem.hasPreActivation = true;
  problem.n = 20;
  EXPECT_NE(refusal(problem).find("multiples of 8 elements, not of 20"), std::string::npos) << refusal(problem);
}

TEST(GemmEpilogue, SumsBiasGradientsByThemselvesInTheDtypeOfTheResult) {
  EXPECT_NE(refusal(withBiasGrad(DType::BF16)).find("f32, not in bf16"), std::string::npos);
  GemmProblem biased = withBiasGrad(DType::F32);
  biased.hasBias = true;
  GemmProblem vector = withBiasGrad(DType::F32);
  vector.m = 1;
  for (const GemmProblem& problem : {biased, vector}) EXPECT_NE(refusal(problem), "");
}

TEST(GemmEpilogue, MakesTheGradientOfGeluByItselfInRowsOfEights) {
  GemmProblem narrow = withGeluGrad();
  narrow.n = 20;
  EXPECT_NE(refusal(narrow).find("multiples of 8 elements, not of 20"), std::string::npos) << refusal(narrow);
  GemmProblem biased = withGeluGrad();
  biased.hasBias = true;
  GemmProblem summed = withGeluGrad();
  summed.biasGradType = DType::F32;
  GemmProblem activatedToo = withGeluGrad();
  activatedToo.activation = GemmActivation::Relu;
  for (const GemmProblem& problem : {biased, summed, activatedToo})
    EXPECT_NE(refusal(problem).find("cannot combine"), std::string::npos) << refusal(problem);
  GemmProblem ofVectors = withGeluGrad();
  ofVectors.k = 1;
  EXPECT_NE(refusal(ofVectors).find("vectors"), std::string::npos) << refusal(ofVectors);
}

/// TransformerEngine switches them off (cublaslt_gemm.cu); cuBLASLt 13.1.0 passed the tests of plans on an H100.
TEST(GemmEpilogue, ActivatesProductsOfBlocksOf128OnlyByALibraryThatHasProvenIt) {
  constexpr std::size_t kOld = 130002;
  constexpr std::size_t kProven = 130100;
  for (const GemmActivation activation : {GemmActivation::Relu, GemmActivation::Gelu}) {
    GemmProblem problem = activated(activation);
    problem.cType = DType::BF16;
    EXPECT_TRUE(isEpilogueProven(problem, kOld)) << "no codes";
    problem.aCodes = FactorCodes{.scaling = Scaling::Block1x128};
    problem.bCodes = FactorCodes{.scaling = Scaling::Block128x128};
    EXPECT_TRUE(isEpilogueProven(problem, kProven));
    EXPECT_NE(isEpilogueProven(problem, kOld).reason().find("this is 13.0."), std::string::npos);
    problem.cType = DType::F32;
    EXPECT_FALSE(isEpilogueProven(problem, kProven)) << "measured in 16 bits only";
    problem.activation = GemmActivation::None;
    EXPECT_TRUE(isEpilogueProven(problem, kOld)) << "no activation";
    problem.hasGeluGrad = true;
    EXPECT_FALSE(isEpilogueProven(problem, kProven));
  }
}

TEST(GemmEpilogue, NeedsSomethingToAddUp) {
  for (GemmProblem problem : {activated(GemmActivation::Gelu), withBiasGrad(DType::F32), withGeluGrad()}) {
    problem.k = 0;
    EXPECT_NE(refusal(problem), "");
  }
  GemmProblem empty = kPlain;
  empty.k = 0;
  EXPECT_EQ(refusal(empty), "");
}

}  // namespace
}  // namespace fuseline::cuda
