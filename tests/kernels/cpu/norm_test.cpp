// Norms against golden values and against double-precision formulas.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm/norm.h"
#include "core/numerics/random.h"
#include "core/tensor/tensor.h"
#include "tests/support/pipelines.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::cpu {
namespace {

using testing::kFloatTypes;

/// A tensor in memory and its exact values.
struct Data {
  DType dtype = DType::F32;
  std::vector<double> values;
  std::vector<std::byte> bytes;
};

Data dataOf(std::vector<double> values, DType dtype) {
  Data data{.dtype = dtype, .values = std::move(values)};
  data.bytes.resize(data.values.size() * static_cast<std::size_t>(sizeBytes(dtype)));
  encode(data.values, dtype, data.bytes.data());
  decode(data.bytes.data(), dtype, data.values);
  return data;
}

Data random(std::size_t count, DType dtype, const std::string& name, double mean = 0.0) {
  std::vector<double> values(count);
  RandomStream(3, name).uniforms(0, values);
  for (double& value : values) value = mean + 4.0 * value - 2.0;
  return dataOf(std::move(values), dtype);
}

std::vector<double> decoded(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<double> values(bytes.size() / static_cast<std::size_t>(sizeBytes(dtype)));
  decode(bytes.data(), dtype, values);
  return values;
}

double relative(DType dtype) { return dtype == DType::BF16 ? 0x1p-8 : dtype == DType::F16 ? 0x1p-10 : 2e-6; }

void expectNear(const std::vector<double>& actual, const std::vector<double>& expected, DType dtype, double scale,
                const std::string& label) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], relative(dtype) * std::abs(expected[i]) + 3e-6 * scale)
        << label << " [" << i << "]";
}

struct Statistics {
  double mean = 0.0;
  double rstd = 0.0;
};

Statistics statisticsOf(const NormProblem& problem, const double* x) {
  Statistics result;
  const double n = problem.kind == NormKind::L2 ? 1.0 : static_cast<double>(problem.cols);
  if (problem.kind == NormKind::Layer)
    for (std::int64_t col = 0; col < problem.cols; ++col) result.mean += x[col] / n;
  double variance = 0.0;
  for (std::int64_t col = 0; col < problem.cols; ++col) variance += std::pow(x[col] - result.mean, 2) / n;
  result.rstd = 1.0 / std::sqrt(variance + static_cast<double>(problem.eps));
  return result;
}

double gammaAt(const NormProblem& problem, const Data& gamma, std::int64_t col) {
  if (problem.kind == NormKind::L2) return 1.0;
  return gamma.values[static_cast<std::size_t>(col)] + (problem.isGammaZeroCentred ? 1.0 : 0.0);
}

std::string describe(const NormProblem& p) {
  constexpr const char* kNames[] = {"RMSNorm", "LayerNorm", "L2Normalization"};
  return fmt::format("{} {} x {}, {} -> {}", kNames[static_cast<int>(p.kind)], p.rows, p.cols, dtypeName(p.xDType),
                     dtypeName(p.yDType));
}

/// L2Normalization has no weight: nothing of it may be read.
const std::byte* gammaOf(const NormProblem& problem, const Data& gamma) {
  return problem.kind == NormKind::L2 ? nullptr : gamma.bytes.data();
}

void expectForwardRight(const NormProblem& problem) {
  const auto count = static_cast<std::size_t>(problem.rows * problem.cols);
  const Data x = random(count, problem.xDType, "x", 0.5);
  const Data gamma = random(static_cast<std::size_t>(problem.cols), problem.parameterDType, "gamma");
  const Data beta = random(static_cast<std::size_t>(problem.cols), problem.parameterDType, "beta");
  const bool isLayer = problem.kind == NormKind::Layer;
  std::vector<double> expected(count);
  std::vector<double> rstds;
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    const Statistics s = statisticsOf(problem, x.values.data() + row * problem.cols);
    rstds.push_back(s.rstd);
    for (std::int64_t col = 0; col < problem.cols; ++col) {
      const auto i = static_cast<std::size_t>(row * problem.cols + col);
      expected[i] = gammaAt(problem, gamma, col) * (x.values[i] - s.mean) * s.rstd +
                    (isLayer ? beta.values[static_cast<std::size_t>(col)] : 0.0);
    }
  }
  std::vector<std::byte> y(count * static_cast<std::size_t>(sizeBytes(problem.yDType)));
  std::vector<float> rstd(static_cast<std::size_t>(problem.rows));
  std::vector<std::byte> workspace(normForwardWorkspaceBytes(problem));
  normForward(problem,
              {.x = x.bytes.data(),
               .gamma = gammaOf(problem, gamma),
               .beta = isLayer ? beta.bytes.data() : nullptr,
               .y = y.data(),
               .rstd = rstd.data()},
              workspace.data());
  expectNear(decoded(y, problem.yDType), expected, problem.yDType, 4.0, describe(problem));
  expectNear({rstd.begin(), rstd.end()}, rstds, DType::F32, 1.0, describe(problem) + " rstd");
}

constexpr std::pair<std::int64_t, std::int64_t> kNormGrids[] = {{1, 1},   {0, 8},     {3, 7},    {1, 64},
                                                                {5, 129}, {200, 100}, {33, 1027}};
TEST(Norms, ForwardEqualsTheFormula) {
  for (const NormKind kind : {NormKind::Rms, NormKind::Layer, NormKind::L2})
    for (const auto& [rows, cols] : kNormGrids)
      for (const DType x : kFloatTypes)
        for (const DType y : kFloatTypes)
          ASSERT_NO_FATAL_FAILURE(expectForwardRight({.kind = kind,
                                                      .rows = rows,
                                                      .cols = cols,
                                                      .xDType = x,
                                                      .yDType = y,
                                                      .parameterDType = y,
                                                      .eps = 0.3F,
                                                      .isGammaZeroCentred = rows == 3 && kind != NormKind::L2,
                                                      .threads = 2}));
}

// Two passes over the row: a mean far from zero must not cost the variance its digits.
TEST(Norms, LayerNormSurvivesALargeMean) {
  std::vector<double> values;
  for (int i = 0; i < 77; ++i) values.push_back(1000.0 + 0.125 * (i % 8));
  const Data x = dataOf(values, DType::F32);
  const Data gamma = dataOf(std::vector<double>(77, 1.0), DType::F32);
  const Data beta = dataOf(std::vector<double>(77, 0.0), DType::F32);
  const NormProblem problem{.kind = NormKind::Layer, .rows = 1, .cols = 77, .eps = 0.0F};
  std::vector<std::byte> y(77 * 4);
  float rstd = 0.0F;
  std::vector<std::byte> workspace(normForwardWorkspaceBytes(problem));
  normForward(
      problem,
      {.x = x.bytes.data(), .gamma = gamma.bytes.data(), .beta = beta.bytes.data(), .y = y.data(), .rstd = &rstd},
      workspace.data());
  const double exact = statisticsOf(problem, values.data()).rstd;
  EXPECT_NEAR(static_cast<double>(rstd), exact, 1e-5 * exact);
}

void expectBackwardRight(const NormProblem& problem, bool hasExtra) {
  const auto count = static_cast<std::size_t>(problem.rows * problem.cols);
  const auto cols = static_cast<std::size_t>(problem.cols);
  const Data x = random(count, problem.xDType, "x", 0.5);
  const Data dy = random(count, problem.yDType, "dy");
  const Data extra = random(count, problem.xDType, "extra");
  const Data gamma = random(cols, problem.parameterDType, "gamma");
  const bool isLayer = problem.kind == NormKind::Layer;
  const bool hasWeight = problem.kind != NormKind::L2;
  std::vector<double> dx(count), dgamma(cols), dbeta(cols);
  std::vector<float> means, rstds;
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    const Statistics s = statisticsOf(problem, x.values.data() + row * problem.cols);
    means.push_back(static_cast<float>(s.mean));
    rstds.push_back(static_cast<float>(s.rstd));
    double meanQxh = 0.0, meanQ = 0.0;
    const auto at = [&](std::int64_t col) { return static_cast<std::size_t>(row * problem.cols + col); };
    const auto xh = [&](std::int64_t col) { return (x.values[at(col)] - s.mean) * s.rstd; };
    const auto q = [&](std::int64_t col) { return gammaAt(problem, gamma, col) * dy.values[at(col)]; };
    for (std::int64_t col = 0; col < problem.cols; ++col) {
      meanQxh += q(col) * xh(col) / (hasWeight ? static_cast<double>(problem.cols) : 1.0);
      meanQ += isLayer ? q(col) / static_cast<double>(problem.cols) : 0.0;
      dgamma[static_cast<std::size_t>(col)] += dy.values[at(col)] * xh(col);
      dbeta[static_cast<std::size_t>(col)] += dy.values[at(col)];
    }
    for (std::int64_t col = 0; col < problem.cols; ++col)
      dx[at(col)] = s.rstd * (q(col) - meanQxh * xh(col) - meanQ) + (hasExtra ? extra.values[at(col)] : 0.0);
  }
  std::vector<std::byte> dxOut(count * static_cast<std::size_t>(sizeBytes(problem.xDType)));
  std::vector<std::byte> dgammaOut(cols * static_cast<std::size_t>(sizeBytes(problem.parameterDType)));
  std::vector<std::byte> dbetaOut(dgammaOut.size());
  std::vector<std::byte> workspace(normBackwardWorkspaceBytes(problem));
  normBackward(problem,
               {.x = x.bytes.data(),
                .dy = dy.bytes.data(),
                .extra = hasExtra ? extra.bytes.data() : nullptr,
                .gamma = gammaOf(problem, gamma),
                .mean = means.data(),
                .rstd = rstds.data(),
                .dx = dxOut.data(),
                .dgamma = hasWeight ? dgammaOut.data() : nullptr,
                .dbeta = isLayer ? dbetaOut.data() : nullptr},
               workspace.data());
  const std::string label = describe(problem);
  const double sumScale = 1.0 + static_cast<double>(problem.rows);
  expectNear(decoded(dxOut, problem.xDType), dx, problem.xDType, 8.0, label + " dx");
  if (hasWeight)
    expectNear(decoded(dgammaOut, problem.parameterDType), dgamma, problem.parameterDType, sumScale, label + " dgamma");
  if (isLayer)
    expectNear(decoded(dbetaOut, problem.parameterDType), dbeta, problem.parameterDType, sumScale, label + " dbeta");
}

TEST(Norms, BackwardEqualsTheFormula) {
  for (const NormKind kind : {NormKind::Rms, NormKind::Layer, NormKind::L2})
    for (const auto& [rows, cols] : kNormGrids)
      for (const DType x : kFloatTypes)
        for (const DType y : kFloatTypes)
          for (const bool hasExtra : {false, true})
            ASSERT_NO_FATAL_FAILURE(expectBackwardRight({.kind = kind,
                                                         .rows = rows,
                                                         .cols = cols,
                                                         .xDType = x,
                                                         .yDType = y,
                                                         .parameterDType = y,
                                                         .eps = 0.3F,
                                                         .isGammaZeroCentred = rows == 3 && kind != NormKind::L2,
                                                         .threads = 2},
                                                        hasExtra));
}

TEST(Norms, BackwardWithoutRowsGivesZeroParameterGradients) {
  const NormProblem problem{.kind = NormKind::Layer, .rows = 0, .cols = 5};
  const Data gamma = random(5, DType::F32, "gamma");
  std::vector<float> dgamma(5, 7.0F), dbeta(5, 7.0F);
  std::vector<std::byte> workspace(normBackwardWorkspaceBytes(problem));
  normBackward(problem,
               {.gamma = gamma.bytes.data(),
                .dgamma = reinterpret_cast<std::byte*>(dgamma.data()),
                .dbeta = reinterpret_cast<std::byte*>(dbeta.data())},
               workspace.data());
  EXPECT_EQ(dgamma, std::vector<float>(5, 0.0F));
  EXPECT_EQ(dbeta, std::vector<float>(5, 0.0F));
}

// te_ops, appendix C: x = (1,2,3,4), dy = (0.1,-0.2,0.3,0.4), weight (0.5,1,1.5,2), eps 1e-5.
TEST(Norms, RmsNormGoldenValues) {
  const NormProblem problem{.rows = 1, .cols = 4, .eps = 1e-5F};
  const Data x = dataOf({1, 2, 3, 4}, DType::F32);
  const Data dy = dataOf({0.1, -0.2, 0.3, 0.4}, DType::F32);
  const Data gamma = dataOf({0.5, 1, 1.5, 2}, DType::F32);
  std::vector<std::byte> y(16), dx(16), dgamma(16), workspace(normBackwardWorkspaceBytes(problem));
  float rstd = 0.0F;
  normForward(problem, {.x = x.bytes.data(), .gamma = gamma.bytes.data(), .y = y.data(), .rstd = &rstd},
              workspace.data());
  normBackward(problem,
               {.x = x.bytes.data(),
                .dy = dy.bytes.data(),
                .gamma = gamma.bytes.data(),
                .rstd = &rstd,
                .dx = dx.data(),
                .dgamma = dgamma.data()},
               workspace.data());
  EXPECT_NEAR(static_cast<double>(rstd), 0.3651481282, 1e-7);
  expectNear(decoded(y, DType::F32), {0.1825741, 0.7302963, 1.6431666, 2.9211850}, DType::F32, 0.1, "y");
  expectNear(decoded(dx, DType::F32), {-0.0328633, -0.1752710, 0.0109546, 0.0876358}, DType::F32, 0.1, "dx");
  expectNear(decoded(dgamma, DType::F32), {0.0365148, -0.1460593, 0.3286333, 0.5842370}, DType::F32, 0.1, "dgamma");
}

// te_ops, appendix C: x and dy as above, no weight, eps 1e-6.
TEST(Norms, L2NormalizationGoldenValues) {
  const NormProblem problem{.kind = NormKind::L2, .rows = 1, .cols = 4, .eps = 1e-6F};
  const Data x = dataOf({1, 2, 3, 4}, DType::F32);
  const Data dy = dataOf({0.1, -0.2, 0.3, 0.4}, DType::F32);
  std::vector<std::byte> y(16), dx(16), workspace(normBackwardWorkspaceBytes(problem));
  float rnorm = 0.0F;
  normForward(problem, {.x = x.bytes.data(), .y = y.data(), .rstd = &rnorm}, workspace.data());
  normBackward(problem, {.x = x.bytes.data(), .dy = dy.bytes.data(), .rstd = &rnorm, .dx = dx.data()},
               workspace.data());
  EXPECT_NEAR(static_cast<double>(rnorm), 1.0 / std::sqrt(30.0), 1e-7);
  expectNear(decoded(y, DType::F32), {0.1825742, 0.3651484, 0.5477225, 0.7302967}, DType::F32, 0.1, "y");
  expectNear(decoded(dx, DType::F32), {0.0048686, -0.0632924, 0.0146059, 0.0194746}, DType::F32, 0.1, "dx");
}

TEST(Norms, AddedRowsAreNormalizedAsIfStoredFirst) {
  for (const DType dtype : kFloatTypes) {
    const NormProblem problem{.rows = 6, .cols = 130, .xDType = dtype, .yDType = dtype, .parameterDType = dtype};
    const Data a = random(780, dtype, "a");
    const Data b = random(780, dtype, "b");
    const Data gamma = random(130, dtype, "gamma");
    std::vector<std::byte> sum(a.bytes.size()), fused(a.bytes.size()), alone(a.bytes.size()), separate(a.bytes.size());
    std::vector<std::byte> workspace(normForwardWorkspaceBytes(problem));
    NormAddend addend{.a = a.bytes.data(), .b = b.bytes.data(), .aDType = dtype, .bDType = dtype, .sum = sum.data()};
    addNormForward(problem, addend, {.gamma = gamma.bytes.data(), .y = fused.data()}, workspace.data());
    addend.sum = nullptr;
    addNormForward(problem, addend, {.gamma = gamma.bytes.data(), .y = alone.data()}, workspace.data());
    normForward(problem, {.x = sum.data(), .gamma = gamma.bytes.data(), .y = separate.data()}, workspace.data());
    std::vector<double> expectedSum(780);
    for (std::size_t i = 0; i < 780; ++i) expectedSum[i] = a.values[i] + b.values[i];
    EXPECT_EQ(sum, dataOf(expectedSum, dtype).bytes);
    EXPECT_EQ(fused, separate);
    EXPECT_EQ(alone, separate);
  }
}

}  // namespace
}  // namespace fuseline::cpu
