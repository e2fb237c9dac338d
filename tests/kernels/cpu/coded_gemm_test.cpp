// GEMMs with quantized factors against plain loops in double: both formats, partial tiles, all numbers of rows.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/coded_gemm.h"
#include "core/numerics/bf16.h"
#include "core/numerics/random.h"
#include "kernels/cpu/gemm/gemm.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::cpu {
namespace {

class CodedGemmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!canMultiplyCodes()) GTEST_SKIP() << "this CPU has no AMX in bf16, or this process may not use it";
  }
};

struct Drawn {
  std::int64_t m = 1, n = 1, k = 1;
  ElementFormat format = ElementFormat::E4M3;
  DType cType = DType::F32;
  float scale = 1.0F;
  std::vector<std::uint16_t> a;
  std::vector<std::uint8_t> codes;  // [n, k]
};

/// Any code but infinities and NaN.
std::vector<std::uint8_t> finiteCodes(ElementFormat format, std::size_t count) {
  std::vector<double> uniforms(count);
  RandomStream(7, "codes").uniforms(0, uniforms);
  std::vector<std::uint8_t> codes;
  for (const double uniform : uniforms) {
    const auto code = static_cast<std::uint8_t>(uniform * 256.0);
    const float value = visitFormat(format, [&](auto codec) { return decltype(codec)::toFloat(code); });
    codes.push_back(std::isfinite(value) ? code : std::uint8_t{0x81});
  }
  return codes;
}

Drawn drawn(std::int64_t m, std::int64_t n, std::int64_t k, ElementFormat format, DType cType) {
  Drawn result{.m = m, .n = n, .k = k, .format = format, .cType = cType, .scale = 0.37F};
  std::vector<double> uniforms(static_cast<std::size_t>(m * k));
  RandomStream(3, "a").uniforms(0, uniforms);
  for (const double uniform : uniforms) result.a.push_back(floatToBf16(static_cast<float>(2.0 * uniform - 1.0)));
  result.codes = finiteCodes(format, static_cast<std::size_t>(n * k));
  return result;
}

float numberOf(const Drawn& given, std::int64_t row, std::int64_t col) {
  const std::uint8_t code = given.codes[static_cast<std::size_t>(row * given.k + col)];
  return visitFormat(given.format, [&](auto codec) { return decltype(codec)::toFloat(code); });
}

/// Through Gemm, as kernels use it.
std::vector<double> product(const Drawn& given) {
  const GemmProblem problem{.m = given.m,
                            .n = given.n,
                            .k = given.k,
                            .b = Storage2d::Transposed,
                            .aType = DType::BF16,
                            .bType = DType::BF16,
                            .bCodes = given.format,
                            .cType = given.cType,
                            .bFactor = &given.scale,
                            .packing = Packing::OnceForever};
  Gemm gemm(problem);
  std::vector<std::byte> workspace(gemm.workspaceBytes() + 64);
  auto* const aligned = workspace.data() + (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64);
  std::vector<std::byte> c(static_cast<std::size_t>(given.m * given.n * sizeBytes(given.cType)), std::byte{0x33});
  for (int run = 0; run < 2; ++run)
    gemm.multiply(reinterpret_cast<const std::byte*>(given.a.data()),
                  reinterpret_cast<const std::byte*>(given.codes.data()), c.data(), aligned);
  std::vector<double> values(static_cast<std::size_t>(given.m * given.n));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = given.cType == DType::F32 ? reinterpret_cast<const float*>(c.data())[i]
                                          : bf16ToFloat(reinterpret_cast<const std::uint16_t*>(c.data())[i]);
  return values;
}

/// Half an ulp of C, and the rounding of a float32 sum of k products.
double allowed(const Drawn& given, double expected, double magnitudes) {
  const double rounding = given.cType == DType::BF16 ? 0x1p-8 * std::abs(expected) : 0.0;
  return rounding + 0x1p-22 * std::sqrt(static_cast<double>(given.k)) * magnitudes;
}

void expectRight(const Drawn& given) {
  const std::vector<double> actual = product(given);
  for (std::int64_t row = 0; row < given.m; ++row)
    for (std::int64_t col = 0; col < given.n; ++col) {
      double sum = 0.0;
      double magnitudes = 0.0;
      for (std::int64_t i = 0; i < given.k; ++i) {
        const double term = static_cast<double>(bf16ToFloat(given.a[static_cast<std::size_t>(row * given.k + i)])) *
                            static_cast<double>(numberOf(given, col, i)) * static_cast<double>(given.scale);
        sum += term;
        magnitudes += std::abs(term);
      }
      ASSERT_NEAR(actual[static_cast<std::size_t>(row * given.n + col)], sum, allowed(given, sum, magnitudes))
          << fmt::format("{} x {} x {} at {}, {}", given.m, given.n, given.k, row, col);
    }
}

TEST_F(CodedGemmTest, IsRightForEveryNumberOfTiles) {
  for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2})
    for (const DType cType : {DType::F32, DType::BF16})
      for (const std::int64_t m : {1, 15, 16, 17, 33, 48, 64}) expectRight(drawn(m, 40, 112, format, cType));
}

TEST_F(CodedGemmTest, IsRightForExtentsBesideWholeTiles) {
  for (const auto& [n, k] :
       {std::pair{1, 1}, std::pair{3, 31}, std::pair{16, 33}, std::pair{17, 32}, std::pair{50, 70}})
    expectRight(drawn(5, n, k, ElementFormat::E4M3, DType::F32));
}

/// Every encoded value in a separate column, with A the identity: C's rows are the values of B's columns.
TEST_F(CodedGemmTest, KeepsEveryCode) {
  constexpr std::int64_t kRows = 16;
  for (const ElementFormat format : {ElementFormat::E4M3, ElementFormat::E5M2}) {
    Drawn given{.m = kRows, .n = 256 / kRows, .k = kRows, .format = format};
    given.a.assign(static_cast<std::size_t>(kRows * kRows), 0);
    for (std::int64_t i = 0; i < kRows; ++i) given.a[static_cast<std::size_t>(i * (kRows + 1))] = floatToBf16(1.0F);
    given.codes.assign(256, 0);
    for (int code = 0; code < 256; ++code) {
      const float value =
          visitFormat(format, [&](auto codec) { return decltype(codec)::toFloat(static_cast<std::uint8_t>(code)); });
      if (std::isfinite(value)) given.codes[static_cast<std::size_t>(code)] = static_cast<std::uint8_t>(code);
    }
    const std::vector<double> actual = product(given);
    for (std::int64_t row = 0; row < given.n; ++row)
      for (std::int64_t col = 0; col < given.k; ++col)
        ASSERT_EQ(actual[static_cast<std::size_t>(col * given.n + row)], numberOf(given, row, col));
  }
}

TEST_F(CodedGemmTest, NanStaysInItsColumn) {
  Drawn given = drawn(4, 20, 40, ElementFormat::E4M3, DType::F32);
  given.codes[static_cast<std::size_t>(7 * given.k + 3)] = 0x7f;
  const std::vector<double> actual = product(given);
  for (std::int64_t row = 0; row < given.m; ++row)
    for (std::int64_t col = 0; col < given.n; ++col)
      ASSERT_EQ(std::isnan(actual[static_cast<std::size_t>(row * given.n + col)]), col == 7);
}

TEST_F(CodedGemmTest, GivesTheSameBitsInEveryPanelOfRows) {
  const Drawn whole = drawn(64, 24, 96, ElementFormat::E5M2, DType::F32);
  const std::vector<double> all = product(whole);
  for (const std::int64_t rows : {1, 16, 20, 48}) {
    Drawn part = whole;
    part.m = rows;
    const std::vector<double> actual = product(part);
    EXPECT_TRUE(std::equal(actual.begin(), actual.end(), all.begin())) << rows;
  }
}

}  // namespace
}  // namespace fuseline::cpu
