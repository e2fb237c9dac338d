// GEMMs against plain loops in double: storage, dtypes, packing, panels, empty extents.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/gemm.h"
#include "core/numerics/random.h"
#include "core/tensor/tensor.h"
#include "kernels/cpu/machine/cpu_info.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::cpu {
namespace {

struct Matrix {
  std::vector<double> values;  // as stored: rounded to dtype
  std::vector<std::byte> bytes;
};

Matrix randomMatrix(std::int64_t count, DType dtype, const std::string& name) {
  Matrix matrix{.values = std::vector<double>(static_cast<std::size_t>(count))};
  RandomStream(5, name).uniforms(0, matrix.values);
  for (double& value : matrix.values) value = 2.0 * value - 1.0;
  matrix.bytes.resize(matrix.values.size() * static_cast<std::size_t>(sizeBytes(dtype)));
  encode(matrix.values, dtype, matrix.bytes.data());
  decode(matrix.bytes.data(), dtype, matrix.values);
  return matrix;
}

double at(const Matrix& matrix, Storage2d storage, std::int64_t row, std::int64_t col, std::int64_t rows,
          std::int64_t cols) {
  return matrix.values[static_cast<std::size_t>(storage == Storage2d::AsRead ? row * cols + col : col * rows + row)];
}

/// Half an ulp of the result, and the rounding of float32 sums of k products of numbers below 1.
double allowed(const GemmProblem& problem, double expected) {
  const double relative = problem.cType == DType::BF16 ? 0x1p-8 : problem.cType == DType::F16 ? 0x1p-10 : 1e-6;
  return relative * std::abs(expected) + 1e-6 * std::sqrt(static_cast<double>(problem.k) + 1.0);
}

std::string describe(const GemmProblem& p) {
  return fmt::format("m {} n {} k {}, {} {} -> {}, a {} b {}, panels of {}", p.m, p.n, p.k, dtypeName(p.aType),
                     dtypeName(p.bType), dtypeName(p.cType), static_cast<int>(p.a), static_cast<int>(p.b),
                     p.maxPanelRows);
}

void expectRight(const GemmProblem& problem) {
  const Matrix a = randomMatrix(problem.m * problem.k, problem.aType, "a");
  const Matrix b = randomMatrix(problem.k * problem.n, problem.bType, "b");
  std::vector<std::byte> c(static_cast<std::size_t>(problem.m * problem.n * sizeBytes(problem.cType)), std::byte{0x33});
  Gemm gemm(problem);
  std::vector<std::byte> workspace(gemm.workspaceBytes());
  const Matrix bias = randomMatrix(problem.biasType ? problem.n : 0, problem.biasType.value_or(DType::F32), "bias");
  for (int run = 0; run < 2; ++run) {
    gemm.setBias(bias.bytes.data());
    gemm.multiply(a.bytes.data(), b.bytes.data(), c.data(), workspace.data());
  }
  std::vector<double> actual(static_cast<std::size_t>(problem.m * problem.n));
  decode(c.data(), problem.cType, actual);
  for (std::int64_t row = 0; row < problem.m; ++row)
    for (std::int64_t col = 0; col < problem.n; ++col) {
      double sum = problem.biasType ? bias.values[static_cast<std::size_t>(col)] : 0.0;
      for (std::int64_t i = 0; i < problem.k; ++i)
        sum += at(a, problem.a, row, i, problem.m, problem.k) * at(b, problem.b, i, col, problem.k, problem.n);
      sum *= problem.alpha;
      const double value = actual[static_cast<std::size_t>(row * problem.n + col)];
      ASSERT_NEAR(value, sum, allowed(problem, sum)) << describe(problem) << " at " << row << ", " << col;
    }
}

constexpr std::int64_t kSizes[][3] = {{1, 1, 1},     {5, 7, 3}, {1, 33, 64}, {70, 1, 17},
                                      {65, 50, 129}, {0, 4, 3}, {4, 0, 3},   {4, 3, 0}};

/// The three GEMMs of a linear layer.
constexpr std::pair<Storage2d, Storage2d> kStorages[] = {{Storage2d::AsRead, Storage2d::Transposed},
                                                         {Storage2d::AsRead, Storage2d::AsRead},
                                                         {Storage2d::Transposed, Storage2d::AsRead}};

class Products : public ::testing::TestWithParam<bool> {
 protected:
  bool isNative() const { return GetParam() && hasNativeBf16Gemm(); }
};

TEST_P(Products, EqualPlainLoopsInEveryDTypeAndStorage) {
  for (const auto& [m, n, k] : kSizes)
    for (const auto& [a, b] : kStorages)
      for (const DType in : {DType::F32, DType::BF16, DType::F16})
        for (const DType out : {DType::F32, in})
          for (const Packing packing : {Packing::OnceForever, Packing::EveryRun})
            ASSERT_NO_FATAL_FAILURE(expectRight({.m = m,
                                                 .n = n,
                                                 .k = k,
                                                 .a = a,
                                                 .b = b,
                                                 .aType = in,
                                                 .bType = in,
                                                 .cType = out,
                                                 .packing = packing,
                                                 .isBf16Native = isNative()}));
}

TEST_P(Products, MixDTypes) {
  for (const DType a : {DType::F32, DType::BF16, DType::F16})
    for (const DType b : {DType::F32, DType::BF16, DType::F16})
      ASSERT_NO_FATAL_FAILURE(expectRight({.m = 9,
                                           .n = 20,
                                           .k = 31,
                                           .b = Storage2d::Transposed,
                                           .aType = a,
                                           .bType = b,
                                           .cType = a,
                                           .isBf16Native = isNative()}));
}

TEST_P(Products, WorkInPanelsOfRows) {
  for (const DType dtype : {DType::F32, DType::BF16})
    for (const std::int64_t panel : {1, 7, 16, 64})
      for (const Packing packing : {Packing::OnceForever, Packing::EveryRun})
        ASSERT_NO_FATAL_FAILURE(expectRight({.m = 50,
                                             .n = 33,
                                             .k = 40,
                                             .b = Storage2d::Transposed,
                                             .aType = dtype,
                                             .bType = dtype,
                                             .cType = dtype,
                                             .packing = packing,
                                             .maxPanelRows = panel,
                                             .isBf16Native = isNative()}));
}

TEST_P(Products, ScaleTheirSums) {
  for (const DType dtype : {DType::F32, DType::BF16})
    for (const auto& [m, n, k] : kSizes)
      for (const auto& [a, b] : kStorages)
        for (const float alpha : {0.0F, -2.5F})
          expectRight({.m = m,
                       .n = n,
                       .k = k,
                       .a = a,
                       .b = b,
                       .aType = dtype,
                       .bType = dtype,
                       .cType = dtype,
                       .alpha = alpha,
                       .isBf16Native = isNative()});
}

TEST_P(Products, AddABias) {
  for (const DType dtype : {DType::F32, DType::BF16})
    for (const auto& [m, n, k] : kSizes)
      for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{16}}) {
        if (k == 0) continue;  // zeros, without the bias
        GemmProblem problem{.m = m, .n = n, .k = k, .b = Storage2d::Transposed, .aType = dtype, .bType = dtype};
        problem.cType = dtype;
        problem.maxPanelRows = rows;
        problem.isBf16Native = isNative();
        if (dtype == DType::BF16 && !isNative()) continue;
        problem.biasType = dtype;
        expectRight(problem);
      }
}

TEST_P(Products, PackOrSumOverManyRows) {
  for (const auto& [a, b] : kStorages) {  // beyond the sizes from which other primitives are chosen
    const bool isWeightGradient = a == Storage2d::Transposed;
    ASSERT_NO_FATAL_FAILURE(expectRight({.m = isWeightGradient ? 20 : 1030,
                                         .n = 24,
                                         .k = isWeightGradient ? 1030 : 20,
                                         .a = a,
                                         .b = b,
                                         .aType = DType::BF16,
                                         .bType = DType::BF16,
                                         .cType = DType::BF16,
                                         .isBf16Native = isNative()}));
  }
}

INSTANTIATE_TEST_SUITE_P(Bf16, Products, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "Native" : "ThroughFloat32"; });

}  // namespace
}  // namespace fuseline::cpu
