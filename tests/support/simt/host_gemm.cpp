// Plain loops over matrices, in double.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt/host_gemm.h"

#include "core/tensor/tensor.h"

#include <tuple>
#include <vector>

namespace fuseline::testing {

namespace {

std::vector<double> decodedMatrix(const std::byte* data, DType dtype, std::int64_t elements) {
  std::vector<double> values(static_cast<std::size_t>(elements));
  decode(data, dtype, values);
  return values;
}

std::vector<double> factor(const std::byte* data, DType dtype, const std::optional<ElementFormat>& code,
                           const float* scale, std::int64_t elements) {
  if (!code) return decodedMatrix(data, dtype, elements);
  std::vector<double> values(static_cast<std::size_t>(elements));
  visitFormat(*code, [&](auto format) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(format.toFloat(static_cast<std::uint8_t>(data[i]))) * static_cast<double>(*scale);
  });
  return values;
}

class HostGemm final : public cuda::Gemm {
 public:
  explicit HostGemm(const cuda::GemmProblem& problem) : m_problem(problem) {}
  std::size_t workspaceBytes() const override { return 0; }

  void multiply(const cuda::GemmPointers& pointers, std::byte*) override {
    const auto& [m, n, k] = std::tie(m_problem.m, m_problem.n, m_problem.k);
    if (m * n == 0) return;
    const std::vector<double> left = factor(pointers.a, m_problem.factorType, m_problem.aCode, pointers.aScale, m * k);
    const std::vector<double> right = factor(pointers.b, m_problem.factorType, m_problem.bCode, pointers.bScale, k * n);
    std::vector<double> sums(static_cast<std::size_t>(m * n));
    if (m_problem.hasAddend) sums = decodedMatrix(pointers.addend, m_problem.cType, m * n);
    for (std::int64_t row = 0; row < m; ++row) addRow(row, left, right, sums);
    if (m_problem.hasBias) addBias(decodedMatrix(pointers.bias, m_problem.cType, n), sums);
    encode(sums, m_problem.cType, pointers.c);
  }

 private:
  void addRow(std::int64_t row, const std::vector<double>& a, const std::vector<double>& b,
              std::vector<double>& sums) const {
    const auto at = [](const std::vector<double>& x, std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
    const bool isATransposed = m_problem.a == cuda::Storage2d::Transposed;
    const bool isBTransposed = m_problem.b == cuda::Storage2d::Transposed;
    for (std::int64_t col = 0; col < m_problem.n; ++col) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < m_problem.k; ++i)
        sum += at(a, isATransposed ? i * m_problem.m + row : row * m_problem.k + i) *
               at(b, isBTransposed ? col * m_problem.k + i : i * m_problem.n + col);
      sums[static_cast<std::size_t>(row * m_problem.n + col)] += static_cast<double>(m_problem.alpha) * sum;
    }
  }

  static void addBias(const std::vector<double>& bias, std::vector<double>& sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += bias[i % bias.size()];
  }

  cuda::GemmProblem m_problem;
};

class HostGemms final : public cuda::GemmLibrary {
 public:
  Result<std::unique_ptr<cuda::Gemm>> prepare(const cuda::GemmProblem& problem) override {
    return std::unique_ptr<cuda::Gemm>(std::make_unique<HostGemm>(problem));
  }
};

}  // namespace

std::unique_ptr<cuda::GemmLibrary> makeHostGemms() { return std::make_unique<HostGemms>(); }

}  // namespace fuseline::testing
