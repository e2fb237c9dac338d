// Products with a bias where the library refuses it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/bias_pass.h"

#include "core/tensor/tensor.h"
#include "tests/support/simt/host_gemm.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

class WithoutBias final : public GemmLibrary {
 public:
  Result<std::unique_ptr<Gemm>> prepare(const GemmProblem& problem) override {
    if (problem.hasBias) return Error{"no bias"};
    return m_library->prepare(problem);
  }
  std::size_t maxWorkspaceBytes() const override { return m_library->maxWorkspaceBytes(); }

 private:
  std::unique_ptr<GemmLibrary> m_library = testing::makeHostGemms();
};

/// Small integers, so that no sum is rounded.
Tensor integers(const Shape& shape, int seed) {
  std::vector<double> values(static_cast<std::size_t>(numElements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(seed)) % 5) - 2.0;
  return Tensor::fromDoubles({DType::F32, shape}, values);
}

std::vector<double> productOf(GemmLibrary& library, GemmProblem problem) {
  const Tensor a = integers({problem.m, problem.k}, 1);
  const Tensor b = integers({problem.k, problem.n}, 2);
  const Tensor bias = integers({problem.n}, 3);
  Tensor c = integers({problem.m, problem.n}, 4);
  auto gemm = library.prepare(problem);
  EXPECT_TRUE(gemm) << gemm.error().message;
  std::vector<std::byte> workspace((*gemm)->workspaceBytes() + 1);
  (*gemm)->multiply({.a = a.data.data(),
                     .b = b.data.data(),
                     .bias = problem.hasBias ? bias.data.data() : nullptr,
                     .addend = problem.hasAddend ? c.data.data() : nullptr,
                     .c = c.data.data()},
                    workspace.data());
  return c.toDoubles();
}

TEST(BiasPass, GivesWhatALibraryWithABiasGives) {
  const auto whole = testing::makeHostGemms();
  const auto passes = makeGemmsWithBiasPass(std::make_unique<WithoutBias>(), 2, nullptr);
  for (const bool hasAddend : {false, true})
    for (const bool hasBias : {false, true})
      for (const std::int64_t n : {1, 7, 8, 17, 264})
        for (const std::int64_t m : {0, 1, 5, 70}) {
          const GemmProblem problem{
              .m = m, .n = n, .k = 3, .hasBias = hasBias, .hasAddend = hasAddend, .alignmentBytes = sizeof(float)};
          EXPECT_EQ(productOf(*passes, problem), productOf(*whole, problem)) << m << " x " << n;
        }
}

class WithNothing final : public GemmLibrary {
 public:
  Result<std::unique_ptr<Gemm>> prepare(const GemmProblem&) override { return Error{"nothing"}; }
  std::size_t maxWorkspaceBytes() const override { return 7; }
};

TEST(BiasPass, PassesOnWhatTheLibraryRefusesAnyway) {
  const auto gemms = makeGemmsWithBiasPass(std::make_unique<WithNothing>(), 2, nullptr);
  EXPECT_EQ(gemms->maxWorkspaceBytes(), 7u);
  for (const bool hasBias : {false, true}) {
    const auto refused = gemms->prepare({.m = 2, .n = 2, .k = 2, .hasBias = hasBias});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "nothing");
  }
}

}  // namespace
}  // namespace fuseline::cuda
