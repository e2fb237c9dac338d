// Quantizers of every scaling: bits against the formulas in double, error bounds, symmetries.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/quantizer.h"

#include "core/quant/hadamard.h"
#include "tests/core/quant/naive_quantizer.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

struct Case {
  std::string name;
  QuantizerSpec spec;
  std::int64_t blockRows;  // of the rowwise quantized tensor
  std::int64_t blockCols;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr std::int64_t kWhole = 1 << 20;

const std::vector<Case> kCases = {
    {"PerTensorE4M3", {.format = ElementFormat::E4M3, .scaling = Scaling::PerTensor}, kWhole, kWhole},
    {"PerTensorE5M2PowerOfTwo",
     {.format = ElementFormat::E5M2, .scaling = Scaling::PerTensor, .scale = {.isPowerOfTwo = true}},
     kWhole,
     kWhole},
    {"PerTensorEpsilon",
     {.format = ElementFormat::E4M3, .scaling = Scaling::PerTensor, .scale = {.epsilon = 0.5f}},
     kWhole,
     kWhole},
    {"Block1x128", {.scaling = Scaling::Block1x128, .scale = {.isPowerOfTwo = true}}, 1, 128},
    {"Block1x128Fp32Scales", {.format = ElementFormat::E5M2, .scaling = Scaling::Block1x128}, 1, 128},
    {"Block128x128", {.scaling = Scaling::Block128x128, .scale = {.isPowerOfTwo = true}}, 128, 128},
    {"Mx1x32E4M3", {.format = ElementFormat::E4M3, .scaling = Scaling::Mx1x32}, 1, 32},
    {"Mx1x32E5M2", {.format = ElementFormat::E5M2, .scaling = Scaling::Mx1x32}, 1, 32},
    {"Mx32x32", {.scaling = Scaling::Mx32x32}, 32, 32},
    {"Nv1x16", {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16}, 1, 16},
    {"Nv16x16", {.format = ElementFormat::E2M1, .scaling = Scaling::Nv16x16}, 16, 16},
};

/// Normally distributed numbers times powers of two up to 2^spread, some zeros, and the requested number of specials.
Tensor randomTensor(const TensorSpec& spec, std::uint32_t seed, int spread, int specialsPerMille) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> exponent(-spread, spread);
  std::uniform_int_distribution<int> perMille(0, 999);
  const double specials[] = {std::nan(""), std::numeric_limits<double>::infinity(), -INFINITY, -0.0, 1e-45, 3e38};
  std::vector<double> values(static_cast<std::size_t>(spec.numElements()));
  for (double& value : values) {
    value = perMille(random) < 20 ? 0.0 : std::ldexp(normal(random), exponent(random));
    if (perMille(random) < specialsPerMille) value = specials[perMille(random) % 6];
  }
  return Tensor::fromDoubles(spec, values);
}

/// Now and then larger than a block of 128.
TensorSpec arbitrarySpec() {
  const auto extent = [] {
    const int isLarge = *rc::gen::inRange(0, 6);
    return isLarge == 0 ? *rc::gen::inRange<std::int64_t>(120, 170) : *rc::gen::inRange<std::int64_t>(1, 40);
  };
  return {*rc::gen::element(DType::F32, DType::BF16, DType::F16), {extent(), extent()}};
}

DoubleMatrix matrixOfDoubles(const Tensor& x) { return {x.spec.rows(), x.spec.cols(), x.toDoubles()}; }

QuantizedTensor quantized(const Tensor& x, const QuantizerSpec& spec, const QuantizerInputs& inputs = {}) {
  Result<QuantizedTensor> result = quantize(x, spec, Copies::Both, inputs);
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

Tensor dequantized(const QuantizedTensor& tensor, Usage direction) {
  Result<Tensor> result = dequantize(tensor, direction);
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

int codeAt(const QuantizedTensor& tensor, Usage direction, std::int64_t row, std::int64_t col) {
  const Tensor& data = tensor.copy(direction)->data;
  const bool isPacked = tensor.spec.format == ElementFormat::E2M1;
  const auto byte =
      static_cast<int>(data.data[static_cast<std::size_t>(row * data.spec.cols() + (isPacked ? col / 2 : col))]);
  if (!isPacked) return byte;
  return col % 2 == 0 ? byte & 15 : byte >> 4;
}

std::uint32_t scaleAt(const QuantizedTensor& tensor, Usage direction, std::int64_t row, std::int64_t col) {
  const Tensor& scales = tensor.copy(direction)->scaleInv;
  const auto width = static_cast<std::size_t>(sizeBytes(scales.spec.dtype));
  const auto columns = tensor.spec.scaling == Scaling::PerTensor ? 1 : scales.spec.cols();
  std::uint32_t stored = 0;
  std::memcpy(&stored, scales.data.data() + static_cast<std::size_t>(row * columns + col) * width, width);
  return stored;
}

void expectSame(const QuantizedTensor& actual, Usage direction, const NaiveCopy& expected) {
  for (const auto& [place, scale] : expected.scales)
    RC_ASSERT(scaleAt(actual, direction, place.first, place.second) == scale.stored);
  for (std::int64_t row = 0; row < expected.codes.rows; ++row)
    for (std::int64_t col = 0; col < expected.codes.cols; ++col)
      RC_ASSERT(codeAt(actual, direction, row, col) == static_cast<int>(expected.codes.at(row, col)));
}

class Quantizer : public ::testing::TestWithParam<Case> {
 protected:
  const QuantizerSpec& spec() const { return GetParam().spec; }
  bool isTransposed() const { return traitsOf(spec().scaling).isColumnwiseTransposed; }
};

TEST_P(Quantizer, GivesTheBitsOfTheFormulas) {
  EXPECT_TRUE(rc::check([this](std::uint32_t seed) {
    const int specials = *rc::gen::element(0, 0, 5);
    const Tensor x = randomTensor(arbitrarySpec(), seed, *rc::gen::element(2, 20), specials);
    const QuantizedTensor actual = quantized(x, spec());
    const DoubleMatrix matrix = matrixOfDoubles(x);
    const auto [rows, cols] = std::pair(GetParam().blockRows, GetParam().blockCols);
    expectSame(actual, Usage::Rowwise, naiveCopy(matrix, rows, cols, spec(), x.spec.dtype));
    expectSame(actual, Usage::Columnwise,
               isTransposed() ? naiveCopy(transposedOf(matrix), rows, cols, spec(), x.spec.dtype)
                              : naiveCopy(matrix, cols, rows, spec(), x.spec.dtype));
  }));
}

/// The distance between neighbors around a value of the format.
double stepAt(const MinifloatDefinition& format, int code) {
  const int magnitude = code & (format.signBit() - 1);
  return magnitude == format.maxCode ? format.valueOf(magnitude) - format.valueOf(magnitude - 1)
                                     : format.valueOf(magnitude + 1) - format.valueOf(magnitude);
}

/// Half a step of the scales' format around 0, in units of the largest of the tensor: scales of E4M3 are multiples of
/// its smallest value there, and one that is rounded down may leave the largest value of its block out of range.
double halfAStepOfSmallScales(const QuantizerSpec& spec) {
  if (!isNvfp4(spec.scaling)) return 0;
  const MinifloatDefinition& format = definitionOf(ElementFormat::E4M3);
  return format.valueOf(1) / 2 / format.valueOf(format.maxCode);
}

/// Half a step of the format times the scale, or the range that the scale's own rounding excludes; and the rounding of
/// the scale's inverse, 2^-22 of the value.
TEST_P(Quantizer, ErrsByHalfAStepOfTheFormatAtMost) {
  EXPECT_TRUE(rc::check([this](std::uint32_t seed) {
    TensorSpec shape = arbitrarySpec();
    shape.dtype = DType::F32;
    const Tensor x = randomTensor(shape, seed, 3, 0);
    const QuantizedTensor tensor = quantized(x, spec());
    const std::vector<double> expected = x.toDoubles();
    const std::vector<double> actual = dequantized(tensor, Usage::Rowwise).toDoubles();
    const auto& format = definitionOf(spec().format);
    // A value that became zero is below half the smallest value, in units of the largest of the tensor.
    const double amax = amaxOfDoubles(expected);
    const double largestZero = amax * format.valueOf(1) / format.valueOf(format.maxCode);
    const double outOfReach = amax * halfAStepOfSmallScales(spec());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto [row, col] = std::div(static_cast<std::int64_t>(i), x.spec.cols());
      const int code = codeAt(tensor, Usage::Rowwise, row, col);
      const double value = format.valueOf(code & (format.signBit() - 1));
      // The scale of a block may be too small for its own format, too: it is then 0, independent of the encoded values.
      const bool isZero = actual[i] == 0;
      double bound = isZero ? std::abs(expected[i]) : stepAt(format, code) / 2 * std::abs(actual[i]) / value;
      if (value == format.valueOf(format.maxCode)) bound = std::max(bound, outOfReach);
      RC_ASSERT(std::abs(actual[i] - expected[i]) <= bound + std::abs(expected[i]) * 0x1p-22);
      RC_ASSERT(!isZero || std::abs(expected[i]) <= largestZero);
    }
  }));
}

TEST_P(Quantizer, DequantizesToTheNearestOfTheFormulas) {
  EXPECT_TRUE(rc::check([this](std::uint32_t seed) {
    TensorSpec shape = arbitrarySpec();
    shape.dtype = DType::F32;
    const Tensor x = randomTensor(shape, seed, 3, 0);
    const auto [rows, cols] = std::pair(GetParam().blockRows, GetParam().blockCols);
    const NaiveCopy naive = naiveCopy(matrixOfDoubles(x), rows, cols, spec(), DType::F32);
    const std::vector<double> actual = dequantized(quantized(x, spec()), Usage::Rowwise).toDoubles();
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const auto [row, col] = std::div(static_cast<std::int64_t>(i), x.spec.cols());
      const double value = definitionOf(spec().format).valueOf(static_cast<int>(naive.codes.at(row, col)));
      RC_ASSERT(actual[i] == f32(value * naive.scales.at({row / rows, col / cols}).factor));
    }
  }));
}

TEST_P(Quantizer, ScalesWithPowersOfTwo) {
  if (spec().scale.epsilon != 0) GTEST_SKIP() << "an epsilon is an absolute size";
  EXPECT_TRUE(rc::check([this](std::uint32_t seed) {
    const double power = std::ldexp(1.0, *rc::gen::inRange(-20, 20));
    TensorSpec shape = arbitrarySpec();
    shape.dtype = DType::F32;
    const Tensor x = randomTensor(shape, seed, 3, 0);
    std::vector<double> values = x.toDoubles();
    for (double& value : values) value *= power;
    const QuantizedTensor plain = quantized(x, spec());
    const QuantizedTensor scaled = quantized(Tensor::fromDoubles(shape, values), spec());
    RC_ASSERT(scaled.rowwise->data.data == plain.rowwise->data.data);
    std::vector<double> expected = dequantized(plain, Usage::Rowwise).toDoubles();
    for (double& value : expected) value *= power;
    RC_ASSERT(dequantized(scaled, Usage::Rowwise).toDoubles() == expected);
  }));
}

Tensor transposedTensor(const Tensor& x) {
  return Tensor::fromDoubles({x.spec.dtype, {x.spec.cols(), x.spec.rows()}}, transposedOf(matrixOfDoubles(x)).values);
}

TEST_P(Quantizer, TheColumnwiseCopyIsTheRowwiseCopyOfTheTranspose) {
  EXPECT_TRUE(rc::check([this](std::uint32_t seed) {
    const Tensor x = randomTensor(arbitrarySpec(), seed, 3, 0);
    const QuantizedTensor tensor = quantized(x, spec());
    const QuantizedTensor other = quantized(transposedTensor(x), spec());
    if (isTransposed()) {
      RC_ASSERT(tensor.columnwise->data.data == other.rowwise->data.data);
      RC_ASSERT(tensor.columnwise->scaleInv.data == other.rowwise->scaleInv.data);
    }
    const Tensor back = transposedTensor(dequantized(other, Usage::Rowwise));
    RC_ASSERT(dequantized(tensor, Usage::Columnwise).data == back.data);
  }));
}

TEST_P(Quantizer, TakesTensorsWithoutElements) {
  for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}, Shape{}}) {
    const Tensor x = Tensor::zeros({DType::F32, shape});
    EXPECT_EQ(dequantized(quantized(x, spec()), Usage::Rowwise).data, x.data) << toString(shape);
    EXPECT_EQ(dequantized(quantized(x, spec()), Usage::Columnwise).data, x.data) << toString(shape);
  }
}

TEST_P(Quantizer, IgnoresNanInAmaxAndKeepsItInTheData) {
  std::vector<double> values(32, 1.0);
  values[3] = std::nan("");
  const QuantizedTensor tensor = quantized(Tensor::fromDoubles({DType::F32, {1, 32}}, values), spec());
  EXPECT_EQ(codeAt(tensor, Usage::Rowwise, 0, 3), definitionOf(spec().format).nanCode);
  EXPECT_NE(codeAt(tensor, Usage::Rowwise, 0, 4), 0);
}

INSTANTIATE_TEST_SUITE_P(Scalings, Quantizer, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

// amax 896 = 2 * 448, so the scale is 0.5 and its inverse 2: 896 -> 448 (7e), 3 -> 1.5 (3c), -1 -> -0.5 (b0).
TEST(PerTensor, ByHand) {
  const Tensor x = Tensor::fromDoubles({DType::BF16, {1, 3}}, std::vector<double>{896, 3, -1});
  const QuantizedTensor tensor = quantized(x, {.scaling = Scaling::PerTensor});
  EXPECT_EQ(scaleAt(tensor, Usage::Rowwise, 0, 0), std::bit_cast<std::uint32_t>(2.0f));
  EXPECT_EQ(codeAt(tensor, Usage::Rowwise, 0, 0), 0x7e);
  EXPECT_EQ(codeAt(tensor, Usage::Rowwise, 0, 1), 0x3c);
  EXPECT_EQ(codeAt(tensor, Usage::Rowwise, 0, 2), 0xb0);
}

// Delayed scaling: the scale is given, 100 * 8 saturates at 448 and dequantizes to 448 / 8 = 56.
TEST(PerTensor, TakesAGivenScaleAndSaturates) {
  const Tensor x = Tensor::fromDoubles({DType::F32, {2}}, std::vector<double>{100, 1});
  const QuantizedTensor tensor = quantized(x, {.scaling = Scaling::PerTensor}, {.scale = 8.0f});
  EXPECT_EQ(dequantized(tensor, Usage::Rowwise).toDoubles(), (std::vector<double>{56, 1}));
}

// An amax from all ranks: 448 over 896 gives the scale 0.5 although this rank's tensor is small.
TEST(PerTensor, TakesTheAmaxOfAllRanks) {
  const Tensor x = Tensor::fromDoubles({DType::F32, {1}}, std::vector<double>{1});
  const QuantizedTensor tensor = quantized(x, {.scaling = Scaling::PerTensor}, {.amax = 896.0f});
  EXPECT_EQ(codeAt(tensor, Usage::Rowwise, 0, 0), 0x30);  // 0.5
}

// A block with infinity has the scale 1: infinity saturates at 448, 2 stays 2.
TEST(Block, ScalesByOneWhereAmaxIsInfinite) {
  const Tensor x = Tensor::fromDoubles({DType::F32, {1, 2}}, std::vector<double>{INFINITY, 2});
  const QuantizedTensor tensor = quantized(x, {.scaling = Scaling::Block1x128});
  EXPECT_EQ(dequantized(tensor, Usage::Rowwise).toDoubles(), (std::vector<double>{448, 2}));
}

// 448 / 1e-38 overflows float32: it is replaced by the largest bf16, 0x7f7f0000, and as a power of two by 2^127.
TEST(Block, UsesTheLargestValueOfTheDtypeWhereTheScaleOverflows) {
  const Tensor x = Tensor::fromDoubles({DType::BF16, {1}}, std::vector<double>{1e-38});
  const QuantizedTensor plain = quantized(x, {.scaling = Scaling::Block1x128});
  EXPECT_EQ(scaleAt(plain, Usage::Rowwise, 0, 0),
            std::bit_cast<std::uint32_t>(1.0f / std::bit_cast<float>(0x7f7f0000u)));
  const QuantizedTensor power = quantized(x, {.scaling = Scaling::Block1x128, .scale = {.isPowerOfTwo = true}});
  EXPECT_EQ(scaleAt(power, Usage::Rowwise, 0, 0), std::bit_cast<std::uint32_t>(0x1p-127f));
}

// amax = 448 * 2^k gives exactly 2^k, code 127 + k; a little more gives the next power of two.
TEST(Mx, AnAmaxThatFitsExactlyTakesNoSpareBit) {
  const auto codeOf = [](float amax) { return mxScaleCode(amax, mxInverseOfMax(ElementFormat::E4M3)); };
  for (int k = -100; k < 100; ++k) {
    const auto amax = static_cast<float>(std::ldexp(448.0, k));
    EXPECT_EQ(codeOf(amax), 127 + k) << k;
    EXPECT_EQ(codeOf(std::nextafter(amax, INFINITY) * (1 + 0x1p-22f)), 128 + k) << k;
  }
  EXPECT_EQ(codeOf(0.0f), 0);
  EXPECT_EQ(codeOf(INFINITY), 254);
  EXPECT_EQ(codeOf(std::nanf("")), 255);
}

// Tensor amax 2688 = 448 * 6: the scale of the tensor is 1. Block 0 has amax 2688, so d = 448 (7e), and 1344 becomes 3
// (encoded 5). Block 1 has amax 6, so d = 1 (38), and its elements are representable: -1.5 is 3 with the sign, b.
TEST(Nv, ByHand) {
  std::vector<double> values(32, 0.0);
  values[0] = 2688;
  values[1] = 1344;
  values[16] = 6;
  values[17] = -1.5;
  const QuantizedTensor tensor = quantized(Tensor::fromDoubles({DType::BF16, {1, 32}}, values),
                                           {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16});
  EXPECT_EQ(tensor.rowwise->amax, 2688.0f);
  EXPECT_EQ(scaleAt(tensor, Usage::Rowwise, 0, 0), 0x7eu);
  EXPECT_EQ(scaleAt(tensor, Usage::Rowwise, 0, 1), 0x38u);
  EXPECT_EQ(tensor.rowwise->data.data[0], std::byte{0x57});  // the even element in the lower half
  EXPECT_EQ(tensor.rowwise->data.data[8], std::byte{0xb7});
  EXPECT_EQ(dequantized(tensor, Usage::Rowwise).toDoubles(), values);
}

/// The smallest scale is 2^-9: one of 2.49 x 2^-9 becomes 2 x 2^-9, and the largest value is then 12 x 2^-9.
TEST(Nv, SaturatesABlockWhoseSmallScaleIsRoundedDown) {
  std::vector<double> values(32, 0.0);
  values[0] = 6 * 448;  // so that the scale of the tensor is 1
  values[16] = 6 * 2.49 * 0x1p-9;
  values[17] = -2 * 0x1p-9;
  const QuantizedTensor tensor = quantized(Tensor::fromDoubles({DType::F32, {1, 32}}, values),
                                           {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16});
  const std::vector<double> actual = dequantized(tensor, Usage::Rowwise).toDoubles();
  EXPECT_EQ(actual[0], 6 * 448);
  EXPECT_EQ(actual[16], 12 * 0x1p-9);
  EXPECT_EQ(actual[17], -2 * 0x1p-9);
}

// The scale of the tensor is fl(2688 / 9) = 298.666656. Times fl(1/6), which is above 1/6, the block gives 5.2500005
// and rounds up to 5.5 (4b). A division by 6 would give 5.25 and round to the even 5 (4a).
TEST(Nv, MultipliesByASixthAsTheKernelsDo) {
  EXPECT_EQ(nvTensorScale(9.0f), 0x1.2aaaaap+8f);
  EXPECT_EQ(nvScaleCode(0x1.b00002p-4f, nvTensorScale(9.0f)), 0x4b);
}

// One block of amax 6 in a tensor of amax 2688: all scales are 1, and 1.125 is a quarter of the way from 1 to 1.5.
TEST(Nv, StochasticRoundingRoundsUpAsOftenAsItShould) {
  constexpr int kCount = 1 << 16;
  std::vector<double> values(kCount, 1.125);
  for (std::size_t i = 0; i < values.size(); i += 16) values[i] = i == 0 ? 2688 : 6;
  for (std::size_t i = 1; i < 16; ++i) values[i] = 0;
  const Tensor x = Tensor::fromDoubles({DType::F32, {1, kCount}}, values);
  const QuantizerSpec spec = {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16, .roundsStochastically = true};
  const QuantizedTensor tensor = quantized(x, spec, {.seed = 5, .name = "dy"});
  int numUp = 0;
  int count = 0;
  for (int i = 16; i < kCount; ++i) {
    if (i % 16 == 0) continue;
    const int code = codeAt(tensor, Usage::Rowwise, 0, i);
    ASSERT_TRUE(code == 2 || code == 3) << i;  // 1 or 1.5
    numUp += code == 3 ? 1 : 0;
    ++count;
  }
  EXPECT_NEAR(static_cast<double>(numUp) / count, 0.25, 5 * std::sqrt(0.25 * 0.75 / count));
  EXPECT_EQ(quantized(x, spec, {.seed = 5, .name = "dy"}).rowwise->data.data, tensor.rowwise->data.data);
  EXPECT_NE(quantized(x, spec, {.seed = 6, .name = "dy"}).rowwise->data.data, tensor.rowwise->data.data);
  EXPECT_NE(quantized(x, spec, {.seed = 5, .name = "dz"}).rowwise->data.data, tensor.rowwise->data.data);
}

TEST(Nv, TheTransformedCopyIsThatOfTheTransformedTranspose) {
  const Tensor x = randomTensor({DType::BF16, {48, 33}}, 12, 2, 0);
  const Matrix y = randomHadamard(matrixOf(transposedTensor(x)));
  QuantizerSpec spec = {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16};
  const QuantizedTensor expected = quantized(tensorOf(y, {DType::BF16, {33, 48}}), spec);
  spec.transformsColumnwise = true;
  const QuantizedTensor actual = quantized(x, spec);
  EXPECT_EQ(actual.columnwise->data.data, expected.rowwise->data.data);
  EXPECT_EQ(actual.columnwise->scaleInv.data, expected.rowwise->scaleInv.data);
  EXPECT_EQ(actual.columnwise->amax, amaxOf(y.values));
}

// The transform is orthogonal: the dequantized tensor is close to x, independent of the transform.
TEST(Nv, TheTransformedCopyStandsForTheTensor) {
  const Tensor x = randomTensor({DType::BF16, {64, 40}}, 11, 0, 0);
  const QuantizerSpec spec = {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16, .transformsColumnwise = true};
  const QuantizedTensor tensor = quantized(x, spec);
  EXPECT_TRUE(tensor.spec.isColumnwiseTransformed);
  const std::vector<double> expected = x.toDoubles();
  const std::vector<double> actual = dequantized(tensor, Usage::Columnwise).toDoubles();
  double error = 0;
  double energy = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    energy += expected[i] * expected[i];
  }
  EXPECT_LT(std::sqrt(error / energy), 0.15);  // E2M1 has two significant bits: a step of 1/4 at the least
  const QuantizedTensor plain = quantized(x, {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16});
  EXPECT_EQ(tensor.rowwise->data.data, plain.rowwise->data.data);
  EXPECT_NE(tensor.columnwise->data.data, plain.columnwise->data.data);
}

std::string refusal(const Tensor& x, const QuantizerSpec& spec) {
  const Result<QuantizedTensor> result = quantize(x, spec, Copies::Both);
  return result ? "no error" : result.error().message;
}

TEST(QuantizerErrors, AreSentences) {
  const Tensor x = Tensor::zeros({DType::F32, {10, 16}});
  EXPECT_EQ(refusal(Tensor::zeros({DType::U8, {4}}), {}),
            "A tensor of bytes cannot be quantized; give f32, f16 or bf16.");
  EXPECT_EQ(refusal(x, {.format = ElementFormat::E2M1, .scaling = Scaling::Mx1x32}),
            "Scaling mx_1x32 is for e4m3 and e5m2, but the format is e2m1.");
  EXPECT_EQ(refusal(x, {.format = ElementFormat::E4M3, .scaling = Scaling::Nv1x16}),
            "Scaling nv_1x16 is for e2m1, but the format is e4m3.");
  EXPECT_EQ(refusal(x, {.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16, .transformsColumnwise = true}),
            "The random Hadamard transform needs rows in multiples of 16, but [10, 16] f32 has 10.");
  EXPECT_EQ(refusal(x, {.scaling = Scaling::Mx1x32, .transformsColumnwise = true}),
            "Scaling mx_1x32 has no random Hadamard transform.");
  Result<QuantizedTensor> rowwise = quantize(x, {}, Copies::Rowwise);
  EXPECT_EQ(dequantize(*rowwise, Usage::Columnwise).error().message,
            "The quantized tensor [10, 16] f32 has no columnwise values.");
  EXPECT_EQ(fitsGemm(x.spec, Scaling::PerTensor, Usage::Rowwise).reason(),
            "A GEMM with scaling per_tensor needs multiples of 8 rows and 16 columns, but [10, 16] f32 has 10 rows and "
            "16 columns. Pad it, or keep it in high precision.");
  EXPECT_TRUE(fitsGemm({DType::BF16, {4, 8, 64}}, Scaling::Mx1x32, Usage::Rowwise));
}

/// TransformerEngine: utils.py, assert_dim_for_fp8_exec(), requires rows by 8 and columns by 16 of each operand, and
/// cublaslt_gemm.cu under NVTE_BLOCK_SCALING a contraction by 16 and outer extents by 8. Its own test of blocks,
/// test_float8_blockwise_gemm_exact.py, multiplies 320 x 64 by 336 x 64.
TEST(Quantizer, AGemmAsksForContractionsBy16AndOuterExtentsBy8) {
  for (const Scaling scaling : {Scaling::PerTensor, Scaling::Block1x128, Scaling::Block128x128}) {
    EXPECT_TRUE(fitsGemm({DType::BF16, {8, 16}}, scaling, Usage::Rowwise));
    EXPECT_FALSE(fitsGemm({DType::BF16, {8, 8}}, scaling, Usage::Rowwise));
    EXPECT_FALSE(fitsGemm({DType::BF16, {4, 16}}, scaling, Usage::Rowwise));
    EXPECT_FALSE(fitsGemm({DType::BF16, {8, 16}}, scaling, Usage::Columnwise));
    EXPECT_TRUE(fitsGemm({DType::BF16, {16, 8}}, scaling, Usage::Columnwise));
    EXPECT_TRUE(fitsGemm({DType::BF16, {320, 64}}, scaling, Usage::Columnwise));
  }
  EXPECT_FALSE(fitsGemm({DType::BF16, {320, 48}}, Scaling::Mx1x32, Usage::Rowwise));
}

}  // namespace
}  // namespace fuseline
