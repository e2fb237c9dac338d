// The vectorized 8 and 4 bit codecs against core/numerics, bit for bit, for every instruction set of this machine.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantize/quantized_codecs.h"

#include "core/numerics/bf16.h"
#include "core/numerics/f16.h"
#include "core/numerics/minifloat.h"
#include "core/tensor/tensor.h"
#include "tests/support/pipelines.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace fuseline::cpu {
namespace {

using testing::kFloatTypes;

constexpr float kScales[] = {1.0F, 0.37F, 1000.0F};

std::uint8_t encodeOne(ElementFormat format, float value) {
  return visitFormat(format, [&](auto codec) { return decltype(codec)::fromFloat(value); });
}

float decodeOne(ElementFormat format, std::uint8_t code) {
  return visitFormat(format, [&](auto codec) { return decltype(codec)::toFloat(code); });
}

/// Elements of a dtype as stored in memory, and as float32.
struct Elements {
  std::vector<std::byte> bytes;
  std::vector<float> values;
};

/// All patterns of a 16-bit dtype.
Elements allHalves(DType dtype) {
  std::vector<std::uint16_t> bits(0x10000);
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  Elements elements{.bytes = std::vector<std::byte>(2 * bits.size()), .values = {}};
  std::memcpy(elements.bytes.data(), bits.data(), elements.bytes.size());
  for (const std::uint16_t half : bits)
    elements.values.push_back(dtype == DType::BF16 ? bf16ToFloat(half) : f16ToFloat(half));
  return elements;
}

/// Every 4093rd float32 (a prime).
Elements stridedFloats() {
  Elements elements;
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 4093)
    elements.values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  elements.bytes.resize(sizeof(float) * elements.values.size());
  std::memcpy(elements.bytes.data(), elements.values.data(), elements.bytes.size());
  return elements;
}

Elements elementsOf(DType dtype) { return dtype == DType::F32 ? stridedFloats() : allHalves(dtype); }

/// Encoded value i, packed or unpacked.
std::uint8_t codeAt(ElementFormat format, const std::vector<std::uint8_t>& codes, std::size_t i) {
  if (format != ElementFormat::E2M1) return codes[i];
  return static_cast<std::uint8_t>(i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4);
}

std::size_t sizeOf(ElementFormat format, std::size_t n) {
  return static_cast<std::size_t>(codeBytes(format, static_cast<std::int64_t>(n)));
}

/// A NaN has many patterns; which one does not matter.
bool isSame(const std::byte* a, const std::byte* b, DType dtype) {
  double x = 0;
  double y = 0;
  decode(a, dtype, {&x, 1});
  decode(b, dtype, {&y, 1});
  return std::isnan(x) ? std::isnan(y) : std::memcmp(a, b, static_cast<std::size_t>(sizeBytes(dtype))) == 0;
}

/// Every test once for each instruction set that is compiled and that this machine has.
class QuantizedCodecs : public ::testing::TestWithParam<ElementFormat> {
 protected:
  template <class Check>
  void forEachTarget(Check check) {
    const std::int64_t supported = hwy::SupportedTargets();
    for (std::int64_t rest = supported & HWY_TARGETS; rest != 0; rest &= rest - 1) {
      useTargets(rest & -rest);
      check(hwy::TargetName(rest & -rest));
    }
    useTargets(0);
  }

 private:
  static void useTargets(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().DeInit();
  }
};

TEST_P(QuantizedCodecs, QuantizeLikeTheScalarCodec) {
  for (const DType dtype : kFloatTypes) {
    const Elements elements = elementsOf(dtype);
    std::vector<std::uint8_t> codes(sizeOf(GetParam(), elements.values.size()));
    forEachTarget([&](const char* target) {
      for (const float scale : kScales) {
        codecsOf(GetParam(), dtype).quantize(codes.data(), elements.bytes.data(), scale, elements.values.size());
        for (std::size_t i = 0; i < elements.values.size(); ++i)
          ASSERT_EQ(codeAt(GetParam(), codes, i), encodeOne(GetParam(), elements.values[i] * scale))
              << target << ", " << dtypeName(dtype) << " " << std::hexfloat << elements.values[i] << " by " << scale;
      }
    });
  }
}

TEST_P(QuantizedCodecs, DequantizeLikeTheScalarCodec) {
  std::vector<std::uint8_t> codes(256);  // every encoding, or every pair of encodings
  std::iota(codes.begin(), codes.end(), std::uint8_t{0});
  const std::size_t n = GetParam() == ElementFormat::E2M1 ? 512 : 256;
  for (const DType dtype : kFloatTypes) {
    const auto width = static_cast<std::size_t>(sizeBytes(dtype));
    std::vector<std::byte> out(n * width);
    forEachTarget([&](const char* target) {
      for (const float scale : kScales) {
        codecsOf(GetParam(), dtype).dequantize(out.data(), codes.data(), scale, n);
        for (std::size_t i = 0; i < n; ++i) {
          const auto value = static_cast<double>(decodeOne(GetParam(), codeAt(GetParam(), codes, i)) * scale);
          std::byte expected[4];
          encode({&value, 1}, dtype, expected);
          ASSERT_TRUE(isSame(out.data() + i * width, expected, dtype))
              << target << ", " << dtypeName(dtype) << ", code " << i << " by " << scale;
        }
      }
    });
  }
}

/// Features of 8-bit formats only.
class ByteCodecs : public QuantizedCodecs {};

/// Powers of two from one end of float32 to the other, subnormal ones too, and now and then none.
std::vector<float> scalesOf(std::size_t count, bool arePowersOfTwo) {
  std::vector<float> scales(count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool isOther = !arePowersOfTwo && i % 5 == 3;
    scales[i] = std::ldexp(isOther ? 1.3F : 1.0F,
                           i % 3 == 0 ? static_cast<int>(i * 37 % 280) - 149 : static_cast<int>(i % 20) - 8);
  }
  return scales;
}

TEST_P(ByteCodecs, QuantizeBlocksLikeTheScalarCodec) {
  for (const DType dtype : kFloatTypes) {
    const Elements elements = elementsOf(dtype);
    const std::size_t n = elements.values.size();
    std::vector<std::uint8_t> codes(n);
    for (const std::size_t width : {7U, 32U, 128U}) {
      const std::vector<float> scales = scalesOf(n / width + 1, width == 32);
      forEachTarget([&](const char* target) {
        codecsOf(GetParam(), dtype).quantizeBlocks(codes.data(), elements.bytes.data(), scales.data(), width, n);
        for (std::size_t i = 0; i < n; ++i)
          ASSERT_EQ(codes[i], encodeOne(GetParam(), elements.values[i] * scales[i / width]))
              << target << ", " << dtypeName(dtype) << " " << std::hexfloat << elements.values[i] << " by "
              << scales[i / width];
      });
    }
  }
}

/// Every number of a dtype meets several scales, as its column changes with the length of rows.
TEST_P(ByteCodecs, QuantizeColumnsLikeTheScalarCodec) {
  for (const DType dtype : kFloatTypes) {
    const Elements elements = elementsOf(dtype);
    for (const std::size_t n : {31U, 1000U, 1100U, 2777U}) {
      const std::size_t rows = elements.values.size() / n;
      const std::vector<float> scales = scalesOf(n, n != 1000);
      std::vector<std::uint8_t> codes(rows * n);
      forEachTarget([&](const char* target) {
        codecsOf(GetParam(), dtype).quantizeColumns(codes.data(), elements.bytes.data(), scales.data(), rows, n);
        for (std::size_t i = 0; i < codes.size(); ++i)
          ASSERT_EQ(codes[i], encodeOne(GetParam(), elements.values[i] * scales[i % n]))
              << target << ", " << dtypeName(dtype) << " " << std::hexfloat << elements.values[i] << " by "
              << scales[i % n];
      });
    }
  }
}

TEST_P(ByteCodecs, DequantizeBlocksAndColumnsLikeTheScalarCodec) {
  constexpr std::size_t kCols = 1100;
  constexpr std::size_t kRows = 3;
  constexpr std::size_t kWidth = 32;
  std::vector<std::uint8_t> codes(kCols * kRows);
  std::iota(codes.begin(), codes.end(), std::uint8_t{0});
  const std::vector<float> scales = scalesOf(kCols, false);
  const auto check = [&](const char* target, DType dtype, const std::byte* out, std::size_t i, float scale) {
    const auto value = static_cast<double>(decodeOne(GetParam(), codes[i]) * scale);
    std::byte expected[4];
    encode({&value, 1}, dtype, expected);
    ASSERT_TRUE(isSame(out + i * static_cast<std::size_t>(sizeBytes(dtype)), expected, dtype))
        << target << ", " << dtypeName(dtype) << ", code " << int{codes[i]} << " by " << scale;
  };
  for (const DType dtype : kFloatTypes) {
    std::vector<std::byte> out(codes.size() * static_cast<std::size_t>(sizeBytes(dtype)));
    forEachTarget([&](const char* target) {
      codecsOf(GetParam(), dtype).dequantizeBlocks(out.data(), codes.data(), scales.data(), kWidth, codes.size());
      for (std::size_t i = 0; i < codes.size(); ++i) check(target, dtype, out.data(), i, scales[i / kWidth]);
      codecsOf(GetParam(), dtype).dequantizeColumns(out.data(), codes.data(), scales.data(), kRows, kCols);
      for (std::size_t i = 0; i < codes.size(); ++i) check(target, dtype, out.data(), i, scales[i % kCols]);
    });
  }
}

TEST_P(QuantizedCodecs, TouchNothingBeyondAnyLength) {
  const std::vector<float> values(150, 1.5F);
  const std::uint8_t one = encodeOne(GetParam(), 1.5F);
  forEachTarget([&](const char* target) {
    for (std::size_t n = 0; n < values.size(); ++n) {
      std::vector<std::uint8_t> codes(values.size() + 2, 0xab);
      codecsOf(GetParam(), DType::F32).quantize(codes.data(), values.data(), 1.0F, n);
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(codeAt(GetParam(), codes, i), one) << target << ", " << n;
      for (std::size_t i = sizeOf(GetParam(), n); i < codes.size(); ++i) ASSERT_EQ(codes[i], 0xab) << target << n;
      if (GetParam() == ElementFormat::E2M1 && n % 2 == 1) {
        ASSERT_EQ(codes[n / 2] >> 4, 0);
      }
      std::vector<float> decoded(values.size(), -7.0F);
      codecsOf(GetParam(), DType::F32).dequantize(decoded.data(), codes.data(), 1.0F, n);
      for (std::size_t i = 0; i < decoded.size(); ++i) ASSERT_EQ(decoded[i], i < n ? 1.5F : -7.0F) << target << n;
      std::vector<std::uint16_t> halves(values.size(), 0xabcd);
      codecsOf(GetParam(), DType::BF16).dequantize(halves.data(), codes.data(), 1.0F, n);
      for (std::size_t i = 0; i < halves.size(); ++i) ASSERT_EQ(halves[i], i < n ? 0x3fc0 : 0xabcd) << target << n;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantizedCodecs,
                         ::testing::Values(ElementFormat::E4M3, ElementFormat::E5M2, ElementFormat::E2M1),
                         [](const auto& test) { return std::string(formatName(test.param)); });

INSTANTIATE_TEST_SUITE_P(Formats, ByteCodecs, ::testing::Values(ElementFormat::E4M3, ElementFormat::E5M2),
                         [](const auto& test) { return std::string(formatName(test.param)); });

}  // namespace
}  // namespace fuseline::cpu
