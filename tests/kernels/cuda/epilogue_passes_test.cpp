// Products with an epilogue where the library refuses it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/epilogue_passes.h"

#include "core/tensor/tensor.h"
#include "kernels/cuda/gemm/algorithm_cache.h"
#include "tests/support/simt/host_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

using Refuses = std::function<bool(const GemmProblem&)>;

/// The host's GEMMs, except for some.
class Refusing final : public GemmLibrary {
 public:
  explicit Refusing(Refuses refuses) : m_refuses(std::move(refuses)) {}
  Result<std::unique_ptr<Gemm>> prepare(const GemmProblem& problem) override {
    if (m_refuses(problem)) return Error{"refused"};
    return m_library->prepare(problem);
  }
  std::size_t maxWorkspaceBytes() const override { return 7; }

 private:
  Refuses m_refuses;
  std::unique_ptr<GemmLibrary> m_library = testing::makeHostGemms();
};

std::unique_ptr<GemmLibrary> withPasses(Refuses refuses) {
  return makeGemmsWithPasses(std::make_unique<Refusing>(std::move(refuses)), {.numMultiprocessors = 2});
}

bool hasActivation(const GemmProblem& problem) { return problem.activation != GemmActivation::None; }
bool hasEpilogue(const GemmProblem& problem) {
  return problem.hasBias || problem.biasGradType || problem.hasGeluGrad || hasActivation(problem);
}

/// Small integers, so that no sum is rounded.
Tensor integers(DType dtype, const Shape& shape, int seed) {
  std::vector<double> values(static_cast<std::size_t>(numElements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(seed)) % 5) - 2.0;
  return Tensor::fromDoubles({dtype, shape}, values);
}

/// a is stored transposed if the problem requires it.
struct Operands {
  explicit Operands(const GemmProblem& problem)
      : a(integers(problem.factorType,
                   problem.a == Storage2d::AsRead ? Shape{problem.m, problem.k} : Shape{problem.k, problem.m}, 1)),
        b(integers(problem.factorType, {problem.k, problem.n}, 2)),
        bias(integers(problem.cType, {problem.n}, 3)),
        geluInput(integers(problem.cType, {problem.m, problem.n}, 7)),
        c(integers(problem.cType, {problem.m, problem.n}, 4)),
        preActivation(integers(problem.cType, {problem.m, problem.n}, 6)),
        biasGrad(integers(problem.biasGradType.value_or(DType::F32), {problem.m}, 5)) {}
  Tensor a, b, bias, geluInput, c, preActivation, biasGrad;
};

Operands resultsOf(GemmLibrary& library, GemmProblem problem) {
  problem.alignmentBytes = alignof(std::max_align_t);  // of vectors
  Operands operands(problem);
  auto gemm = library.prepare(problem);
  if (!gemm) throw std::runtime_error(gemm.error().message);
  std::vector<std::byte> workspace((*gemm)->workspaceBytes() + 1);
  (*gemm)->multiply({.a = operands.a.data.data(),
                     .b = operands.b.data.data(),
                     .bias = problem.hasBias ? operands.bias.data.data() : nullptr,
                     .addend = problem.hasAddend ? operands.c.data.data() : nullptr,
                     .geluInput = problem.hasGeluGrad ? operands.geluInput.data.data() : nullptr,
                     .c = operands.c.data.data(),
                     .preActivation = problem.hasPreActivation ? operands.preActivation.data.data() : nullptr,
                     .biasGrad = problem.biasGradType ? operands.biasGrad.data.data() : nullptr},
                    workspace.data(), nullptr);
  return operands;
}

TEST(EpiloguePasses, AddTheBiasThatTheLibraryRefuses) {
  const auto whole = testing::makeHostGemms();
  const auto passes = withPasses(hasEpilogue);
  for (const bool hasAddend : {false, true})
    for (const std::int64_t n : {1, 7, 8, 17, 264})
      for (const std::int64_t m : {0, 1, 5, 70}) {
        const GemmProblem problem{.m = m, .n = n, .k = 3, .hasBias = true, .hasAddend = hasAddend};
        EXPECT_EQ(resultsOf(*passes, problem).c.toDoubles(), resultsOf(*whole, problem).c.toDoubles())
            << m << " x " << n;
      }
}

/// In its tanh form.
double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

/// GELU and ReLU, from exact sums.
std::vector<double> activated(std::vector<double> values, GemmActivation activation) {
  for (double& x : values) x = activation == GemmActivation::Gelu ? gelu(x) : std::max(x, 0.0);
  return values;
}

void expectActivated(GemmLibrary& library, const GemmProblem& problem, const std::string& label) {
  GemmProblem sums = problem;
  sums.activation = GemmActivation::None;
  sums.hasPreActivation = false;
  const std::vector<double> z = resultsOf(library, sums).c.toDoubles();
  const Operands results = resultsOf(library, problem);
  const std::vector<double> c = results.c.toDoubles();
  const std::vector<double> expected = activated(z, problem.activation);
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], expected[i], 1e-5) << label << " at " << i;
  if (!problem.hasPreActivation) return;
  EXPECT_EQ(results.preActivation.toDoubles(), z) << label;
}

/// As a group of one row among others.
TEST(EpiloguePasses, TakeRowsThatBeginAnywhere) {
  constexpr std::int64_t n = 33;
  constexpr std::size_t kShift = 2;
  const GemmProblem problem{.m = 1,
                            .n = n,
                            .k = 3,
                            .factorType = DType::BF16,
                            .cType = DType::BF16,
                            .hasBias = true,
                            .alignmentBytes = kShift};
  const auto library = withPasses(hasEpilogue);
  const Operands expected = resultsOf(*library, problem);
  alignas(64) std::byte c[kShift + n * 2] = {};
  alignas(64) std::byte bias[kShift + n * 2] = {};
  std::ranges::copy(expected.bias.data, bias + kShift);
  const auto gemm = std::move(*library->prepare(problem));
  std::vector<std::byte> workspace(gemm->workspaceBytes());
  gemm->multiply({.a = expected.a.data.data(), .b = expected.b.data.data(), .bias = bias + kShift, .c = c + kShift},
                 workspace.data(), nullptr);
  EXPECT_TRUE(std::ranges::equal(expected.c.data, std::span(c + kShift, static_cast<std::size_t>(n) * 2)));
}

/// For every set of refusals: none, activations, biases as well; and widths for which it has no rows.
TEST(EpiloguePasses, ApplyActivationsAndKeepTheirInput) {
  const std::vector<Refuses> refusals = {[](const GemmProblem&) { return false; }, hasActivation, hasEpilogue};
  for (std::size_t refusal = 0; refusal < refusals.size(); ++refusal) {
    const auto library = withPasses(refusals[refusal]);
    for (const GemmActivation activation : {GemmActivation::Relu, GemmActivation::Gelu})
      for (const int flags : {0, 1, 2, 3, 4, 5, 6, 7})
        for (const std::int64_t n : {1, 8, 17, 264})
          for (const std::int64_t m : {0, 1, 33}) {
            const GemmProblem problem{.m = m,
                                      .n = n,
                                      .k = 3,
                                      .hasBias = (flags & 1) != 0,
                                      .hasAddend = (flags & 2) != 0,
                                      .activation = activation,
                                      .hasPreActivation = (flags & 4) != 0};
            expectActivated(*library, problem, problemKey(problem, refusal));
          }
  }
}

/// GELU's slope is a difference quotient; the operations after the GEMM change nothing else.
TEST(EpiloguePasses, MultiplyByTheSlopeOfGelu) {
  constexpr double kStep = 1e-5;
  for (const bool isRefused : {false, true}) {
    const auto library = withPasses([&](const GemmProblem& problem) { return isRefused && hasEpilogue(problem); });
    for (const std::int64_t n : {1, 8, 17, 264})
      for (const std::int64_t m : {0, 1, 33})
        for (const std::int64_t k : {0, 1, 3}) {
          const GemmProblem problem{.m = m, .n = n, .k = k, .alpha = 0.5F, .hasGeluGrad = true};
          GemmProblem plain = problem;
          plain.hasGeluGrad = false;
          const std::vector<double> z = resultsOf(*library, plain).c.toDoubles();
          const Operands results = resultsOf(*library, problem);
          const std::vector<double> c = results.c.toDoubles();
          const std::vector<double> x = results.geluInput.toDoubles();
          for (std::size_t i = 0; i < c.size(); ++i) {
            const double slope = (gelu(x[i] + kStep) - gelu(x[i] - kStep)) / (2.0 * kStep);
            ASSERT_NEAR(c[i], z[i] * slope, 1e-5) << problemKey(problem, 0) << " at " << i;
          }
        }
  }
}

/// dy: k x m.
std::vector<double> columnSums(const Tensor& dy, std::int64_t cols) {
  const std::vector<double> values = dy.toDoubles();
  std::vector<double> sums(static_cast<std::size_t>(cols));
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % sums.size()] += values[i];
  return sums;
}

/// In one GEMM if the library supports it, and with another read if it does not.
TEST(EpiloguePasses, SumTheGradientOfABias) {
  for (const bool isRefused : {false, true}) {
    const auto library = withPasses([&](const GemmProblem& problem) { return isRefused && hasEpilogue(problem); });
    for (const DType type : {DType::F32, DType::BF16})
      for (const std::int64_t m : {1, 7, 8, 40, 264})
        for (const std::int64_t k : {0, 1, 5, 70}) {
          const GemmProblem problem{.m = m,
                                    .n = 6,
                                    .k = k,
                                    .a = Storage2d::Transposed,
                                    .factorType = type,
                                    .hasAddend = true,
                                    .biasGradType = type};
          GemmProblem plain = problem;
          plain.biasGradType = std::nullopt;
          const Operands results = resultsOf(*library, problem);
          EXPECT_EQ(results.biasGrad.toDoubles(), columnSums(results.a, m)) << m << " x " << k;
          EXPECT_EQ(results.c.toDoubles(), resultsOf(*library, plain).c.toDoubles()) << m << " x " << k;
        }
  }
}

/// Sums of encoded values are not sums of the dequantized ones, and no pass runs along rows.
TEST(EpiloguePasses, SumOnlyColumnsOfNumbers) {
  const auto library = withPasses(hasEpilogue);
  const FactorCodes codes{};
  EXPECT_FALSE(library->prepare({.m = 8,
                                 .n = 8,
                                 .k = 8,
                                 .b = Storage2d::Transposed,
                                 .aCodes = codes,
                                 .bCodes = codes,
                                 .biasGradType = DType::F32}));
  EXPECT_FALSE(library->prepare({.m = 8, .n = 8, .k = 8, .biasGradType = DType::F32}));
}

/// A library that finds one of the ways the fastest, and says which it was asked about.
class Timing final : public GemmLibrary {
 public:
  struct Question {
    GemmProblem problem;
    std::size_t numWays = 0;
  };

  Timing(std::size_t fastest, std::vector<Question>& questions, std::vector<GemmProblem>& solved)
      : m_fastest(fastest), m_questions(questions), m_solved(solved) {}

  Result<std::unique_ptr<Gemm>> prepare(const GemmProblem& problem) override {
    return std::unique_ptr<Gemm>(std::make_unique<Noted>(problem, m_solved));
  }
  std::size_t maxWorkspaceBytes() const override { return 0; }
  std::size_t fastest(const GemmProblem& problem, std::span<Gemm* const> ways) override {
    m_questions.push_back({problem, ways.size()});
    return m_fastest;
  }

 private:
  /// Writes down which problem it is asked to solve, and solves it.
  class Noted final : public Gemm {
   public:
    Noted(const GemmProblem& problem, std::vector<GemmProblem>& solved)
        : m_problem(problem), m_solved(solved), m_gemm(std::move(*testing::makeHostGemms()->prepare(problem))) {}
    std::size_t workspaceBytes() const override { return m_gemm->workspaceBytes(); }
    void multiply(const GemmPointers& pointers, std::byte* workspace, Stream stream) override {
      m_solved.push_back(m_problem);
      m_gemm->multiply(pointers, workspace, stream);
    }

   private:
    GemmProblem m_problem;
    std::vector<GemmProblem>& m_solved;
    std::unique_ptr<Gemm> m_gemm;
  };

  std::size_t m_fastest;
  std::vector<Question>& m_questions;
  std::vector<GemmProblem>& m_solved;
};

/// An activation after a bias, a bias gradient and GELU's: problems that the library solves itself, or in part.
const GemmProblem kActivated{
    .m = 6, .n = 16, .k = 5, .hasBias = true, .activation = GemmActivation::Gelu, .hasPreActivation = true};
const GemmProblem kSummed{.m = 6, .n = 16, .k = 5, .a = Storage2d::Transposed, .biasGradType = DType::F32};
const GemmProblem kSloped{.m = 6, .n = 16, .k = 5, .hasGeluGrad = true};

TEST(EpiloguePasses, TakeTheWayThatIsFaster) {
  for (const GemmProblem& problem : {kActivated, kSummed, kSloped})
    for (const std::size_t fastest : {0u, 1u}) {
      std::vector<Timing::Question> questions;
      std::vector<GemmProblem> solved;
      const auto library =
          makeGemmsWithPasses(std::make_unique<Timing>(fastest, questions, solved), {.numMultiprocessors = 2});
      const Operands results = resultsOf(*library, problem);
      ASSERT_EQ(questions.size(), 1u);
      EXPECT_EQ(questions.front().numWays, 2u);
      ASSERT_EQ(solved.size(), 1u);
      const GemmProblem& by = solved.front();
      EXPECT_EQ(hasActivation(by) || by.biasGradType || by.hasGeluGrad, fastest == 0);
      EXPECT_EQ(solved.front().hasBias, problem.hasBias) << "a bias is no reason to leave";
      const Operands expected = resultsOf(*testing::makeHostGemms(), problem);
      EXPECT_EQ(results.preActivation.toDoubles(), expected.preActivation.toDoubles());
      EXPECT_EQ(results.biasGrad.toDoubles(), expected.biasGrad.toDoubles());
      const std::vector<double> c = results.c.toDoubles();
      const std::vector<double> expectedC = expected.c.toDoubles();
      for (std::size_t i = 0; i < c.size(); ++i) EXPECT_NEAR(c[i], expectedC[i], 1e-5);
    }
}

/// Products that a run prepares on the way must not wait for a contest, and a bias alone needs none.
TEST(EpiloguePasses, TimeNothingWithoutTimeOrReason) {
  GemmProblem hasty = kActivated;
  hasty.hasTimeToTune = false;
  for (const GemmProblem& problem : {hasty, GemmProblem{.m = 6, .n = 16, .k = 5, .hasBias = true}}) {
    std::vector<Timing::Question> questions;
    std::vector<GemmProblem> solved;
    const auto library = makeGemmsWithPasses(std::make_unique<Timing>(1, questions, solved), {.numMultiprocessors = 2});
    resultsOf(*library, problem);
    EXPECT_TRUE(questions.empty());
    EXPECT_TRUE(solved.front().hasBias);
  }
}

/// The requested epilogue, and why the GEMM does not do all of it.
TEST(EpiloguePasses, SayWhichWayWasTaken) {
  const auto wayOf = [](std::size_t fastest, const GemmProblem& problem) {
    std::vector<Timing::Question> questions;
    std::vector<GemmProblem> solved;
    const auto library =
        makeGemmsWithPasses(std::make_unique<Timing>(fastest, questions, solved), {.numMultiprocessors = 2});
    return (*library->prepare(problem))->way();
  };
  EXPECT_EQ(wayOf(0, kActivated), "") << "as it was asked for";
  EXPECT_EQ(wayOf(1, kActivated), "GELU by a separate kernel, which was faster here than the epilogue of cuBLASLt");
  EXPECT_EQ(wayOf(1, kSummed),
            "the gradient of the bias by a separate kernel, which was faster here than the epilogue of cuBLASLt");
  const auto plain = withPasses([](const GemmProblem& problem) { return hasEpilogue(problem); });
  EXPECT_EQ((*plain->prepare(kActivated))->way(),
            "bias and GELU by a separate kernel, because cuBLASLt has no such epilogue");
}

TEST(EpiloguePasses, PassOnWhatTheLibraryRefusesAnyway) {
  const auto gemms = withPasses([](const GemmProblem&) { return true; });
  EXPECT_EQ(gemms->maxWorkspaceBytes(), 7u);
  for (const bool hasBias : {false, true}) {
    const auto refused = gemms->prepare({.m = 2, .n = 2, .k = 2, .hasBias = hasBias});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "refused");
  }
}

}  // namespace
}  // namespace fuseline::cuda
