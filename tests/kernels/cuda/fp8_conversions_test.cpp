// FP8 on GPUs without instructions for it, before 8.9: that code is the host's, and is compared here with the formats'
// definitions.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simt/include/cuda_runtime.h"

#include "core/numerics/bf16.h"
#include "core/numerics/f16.h"
#include "kernels/cuda/device/quantize.h"
#include "tests/support/minifloat_definition.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::cuda::device {
namespace {

using testing::MinifloatDefinition;

/// By search: the nearest value, of two the one with the even encoding; values beyond the range saturate.
int nearestCode(const MinifloatDefinition& format, float value) {
  if (std::isnan(value)) return format.nanCode;
  static const auto e4m3 = testing::kE4M3Definition.magnitudes();
  static const auto e5m2 = testing::kE5M2Definition.magnitudes();
  const auto& magnitudes = format.mantissaBits == 3 ? e4m3 : e5m2;
  const double magnitude = std::abs(static_cast<double>(value));
  const auto above = std::ranges::lower_bound(magnitudes, magnitude);
  int code = static_cast<int>(above - magnitudes.begin());
  if (above == magnitudes.end()) code = format.maxCode;
  if (code > 0 && above != magnitudes.end()) {
    const double up = *above - magnitude;
    const double down = magnitude - *(above - 1);
    if (down < up || (down == up && code % 2 == 1)) --code;
  }
  return code | (std::signbit(value) ? format.signBit() : 0);
}

template <FloatCode kCode>
int codeOf(float value) {
  const float x[4] = {value, 0.0f, 1.0f, -value};
  const std::uint32_t codes = encodeFour<kCode>(x);
  EXPECT_EQ(codes >> 8 & 0xff, 0u);
  return static_cast<int>(codes & 0xff);
}

void expectNearest(float value) {
  ASSERT_EQ(codeOf<FloatCode::E4M3>(value), nearestCode(testing::kE4M3Definition, value)) << value;
  ASSERT_EQ(codeOf<FloatCode::E5M2>(value), nearestCode(testing::kE5M2Definition, value)) << value;
}

TEST(Fp8InSoftware, EncodesEveryValueOf16Bits) {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    expectNearest(bf16ToFloat(static_cast<std::uint16_t>(bits)));
    expectNearest(f16ToFloat(static_cast<std::uint16_t>(bits)));
  }
}

TEST(Fp8InSoftware, EncodesAnyFloat32) {
  EXPECT_TRUE(rc::check([] {
    const float value = std::bit_cast<float>(*rc::gen::arbitrary<std::uint32_t>());
    RC_ASSERT(codeOf<FloatCode::E4M3>(value) == nearestCode(testing::kE4M3Definition, value));
    RC_ASSERT(codeOf<FloatCode::E5M2>(value) == nearestCode(testing::kE5M2Definition, value));
  }));
}

TEST(Fp8InSoftware, DecodesEveryCode) {
  for (const auto& [format, code] :
       {std::pair{testing::kE4M3Definition, FloatCode::E4M3}, {testing::kE5M2Definition, FloatCode::E5M2}})
    for (int bits = 0; bits < 256; ++bits) {
      const float value = decode(static_cast<std::uint8_t>(bits), code);
      const int magnitude = bits & (format.signBit() - 1);
      if (magnitude <= format.maxCode) {
        EXPECT_EQ(static_cast<double>(value), format.valueOf(bits)) << bits;
      }
      EXPECT_EQ(std::isinf(value), magnitude == format.infinityCode) << bits;
      EXPECT_EQ(std::isnan(value), magnitude > std::max(format.maxCode, format.infinityCode)) << bits;
    }
}

}  // namespace
}  // namespace fuseline::cuda::device
