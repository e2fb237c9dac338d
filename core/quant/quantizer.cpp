// One loop over blocks for all scalings: the amax of a block, its scale, its quantized values.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/quantizer.h"

#include "core/quant/four_over_six.h"
#include "core/quant/hadamard.h"
#include "core/quant/matrix.h"
#include "core/quant/rounding_bytes.h"
#include "core/quant/scale_layout.h"
#include "core/quant/scalers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Rows and columns of a matrix: [beginRow, endRow) x [beginCol, endCol).
struct Region {
  std::int64_t beginRow, endRow, beginCol, endCol;

  template <class Visit>
  void forEach(Visit visit) const {
    for (std::int64_t row = beginRow; row < endRow; ++row)
      for (std::int64_t col = beginCol; col < endCol; ++col) visit(row, col);
  }
};

/// The blocks of a matrix, the last of a row or column possibly smaller. A block of 0 x 0 is the whole matrix.
class Blocks {
 public:
  Blocks(std::int64_t rows, std::int64_t cols, BlockShape block)
      : m_rows(rows), m_cols(cols), m_block(block.rows == 0 ? BlockShape{rows, cols} : block) {
    if (block.rows == 0)
      m_grid = {1, 1};
    else
      m_grid = {ceilDiv(rows, block.rows), ceilDiv(cols, block.cols)};
  }

  /// visit(index of the block, its region), row by row.
  template <class Visit>
  void forEach(Visit visit) const {
    for (std::int64_t row = 0; row < m_grid.rows; ++row)
      for (std::int64_t col = 0; col < m_grid.cols; ++col)
        visit(static_cast<std::size_t>(row * m_grid.cols + col), region(row, col));
  }

 private:
  Region region(std::int64_t row, std::int64_t col) const {
    return {row * m_block.rows, std::min((row + 1) * m_block.rows, m_rows), col * m_block.cols,
            std::min((col + 1) * m_block.cols, m_cols)};
  }

  std::int64_t m_rows;
  std::int64_t m_cols;
  BlockShape m_block;
  BlockShape m_grid;
};

/// Positions of a matrix's encoded values: one byte each, or two values per byte.
struct CodePlaces {
  bool isPacked;
  std::int64_t rowBytes;

  CodePlaces(ElementFormat format, std::int64_t cols)
      : isPacked(format == ElementFormat::E2M1), rowBytes(codeBytes(format, cols)) {}

  std::size_t byteOf(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>(row * rowBytes + (isPacked ? col / 2 : col));
  }
  int shiftOf(std::int64_t col) const { return isPacked && col % 2 == 1 ? 4 : 0; }
  std::uint8_t mask() const { return isPacked ? 0x0f : 0xff; }
};

/// Casts elements by their position in the quantized tensor.
class Rounder {
 public:
  Rounder(const QuantizerSpec& spec, const QuantizerInputs& inputs, Usage direction)
      : m_format(spec.format),
        m_isStochastic(spec.roundsStochastically),
        m_random(roundingBytes(inputs.seed, inputs.name, direction)) {}

  std::uint8_t code(float value, std::int64_t index) const {
    return visitFormat(m_format, [&](auto codec) {
      using Format = decltype(codec);
      return m_isStochastic ? Format::fromFloatStochastic(value, m_random.at(static_cast<std::uint64_t>(index)))
                            : Format::fromFloat(value);
    });
  }

 private:
  ElementFormat m_format;
  bool m_isStochastic;
  RandomBytes m_random;
};

std::size_t storedBytes(Scaling scaling) { return traitsOf(scaling).scaleFormat == ScaleFormat::F32 ? 4 : 1; }

float blockAmaxOf(const Matrix& matrix, const Region& region) {
  float amax = 0.0f;
  region.forEach([&](auto row, auto col) { amax = std::fmax(std::fabs(matrix.at(row, col)), amax); });
  return amax;
}

/// Those of NvRow1x16; none where the whole tensor has one.
std::vector<float> rowAmaxesOf(const Matrix& source, Scaling scaling) {
  std::vector<float> amaxes;
  for (std::int64_t row = 0; scaling == Scaling::NvRow1x16 && row < source.rows; ++row)
    amaxes.push_back(blockAmaxOf(source, {row, row + 1, 0, source.cols}));
  return amaxes;
}

/// x in the stored orientation of the quantized tensor, transformed if the spec requires it.
Matrix sourceOf(const Matrix& x, const QuantizerSpec& spec, Usage direction) {
  if (direction == Usage::Rowwise || !traitsOf(spec.scaling).isColumnwiseTransposed) return x;
  return spec.transformsColumnwise ? randomHadamard(transposed(x)) : transposed(x);
}

/// The multiplier of a block.
float chosenScale(const FourOverSixScaler& chooser, const Matrix& source, const Region& region, std::byte* stored) {
  std::vector<float> block;
  region.forEach([&](auto row, auto col) { block.push_back(source.at(row, col)); });
  const BlockScale<std::uint8_t> scale = chooser.scaleOf(block, region.endRow - region.beginRow);
  std::memcpy(stored, &scale.stored, sizeof(scale.stored));
  return scale.multiplier;
}

/// The scales of blocks, given the amax of a tensor, or of the row that they are in.
class TensorScaler {
 public:
  TensorScaler(const QuantizerSpec& spec, const QuantizerInputs& inputs, DType dtype, float amax)
      : m_amax(amax), m_scaleOf(familyOf(spec.scaling).makeScaler({spec, inputs, dtype, amax})) {
    if (spec.fourOverSix) m_chooser.emplace(*spec.fourOverSix, amax);
  }

  float storedAmax() const { return m_chooser ? m_chooser->storedAmax() : m_amax; }

  /// The multiplier of a block, whose scale is stored.
  float scale(const Matrix& source, const Region& region, std::byte* stored) const {
    if (m_chooser) return chosenScale(*m_chooser, source, region, stored);
    float multiplier = blockAmaxOf(source, region);
    m_scaleOf({&multiplier, 1}, stored);
    return multiplier;
  }

 private:
  float m_amax;
  BlockScaler m_scaleOf;
  std::optional<FourOverSixScaler> m_chooser;
};

QuantizedCopy quantizeCopy(const Matrix& x, const QuantizedSpec& quantized, const QuantizerSpec& spec,
                           const QuantizerInputs& inputs, Usage direction) {
  const Matrix source = sourceOf(x, spec, direction);
  const bool isTransformed = quantized.isColumnwiseTransformed && direction == Usage::Columnwise;
  const float amax = (isTransformed ? inputs.transformedAmax : inputs.amax).value_or(amaxOf(source.values));
  QuantizedCopy copy{.data = Tensor::zeros(codesSpec(quantized, direction)),
                     .scaleInv = Tensor::zeros(scalesSpec(quantized, direction)),
                     .amax = std::nullopt};
  const std::vector<float> rowAmaxes = rowAmaxesOf(source, spec.scaling);
  const auto scalerFor = [&](float used) { return TensorScaler(spec, inputs, quantized.nominal.dtype, used); };
  const TensorScaler ofTensor = scalerFor(amax);
  if (isNvfp4(spec.scaling) && rowAmaxes.empty()) copy.amax = ofTensor.storedAmax();
  for (const float row : rowAmaxes) copy.rowAmaxes.push_back(scalerFor(row).storedAmax());
  const Rounder rounder(spec, inputs, direction);
  const CodePlaces places(spec.format, source.cols);
  const std::size_t width = storedBytes(spec.scaling);
  Blocks(source.rows, source.cols, blockOf(spec.scaling, direction))
      .forEach([&](std::size_t block, const Region& region) {
        std::byte* const stored = copy.scaleInv.data.data() + block * width;
        const float multiplier =
            rowAmaxes.empty()
                ? ofTensor.scale(source, region, stored)
                : scalerFor(rowAmaxes[static_cast<std::size_t>(region.beginRow)]).scale(source, region, stored);
        region.forEach([&](auto row, auto col) {
          const std::uint8_t code = rounder.code(source.at(row, col) * multiplier, row * source.cols + col);
          copy.data.data[places.byteOf(row, col)] |= static_cast<std::byte>(code << places.shiftOf(col));
        });
      });
  return copy;
}

Matrix dequantizedCopy(const QuantizedCopy& copy, const QuantizedSpec& spec, Usage direction) {
  const BlockShape shape = storedMatrixOf(spec.nominal, spec.scaling, direction);
  Matrix matrix{.rows = shape.rows, .cols = shape.cols, .values = {}};
  matrix.values.resize(static_cast<std::size_t>(shape.rows * shape.cols));
  const CodePlaces places(spec.format, shape.cols);
  const std::size_t width = storedBytes(spec.scaling);
  Blocks(shape.rows, shape.cols, blockOf(spec.scaling, direction))
      .forEach([&](std::size_t block, const Region& region) {
        std::uint32_t stored = 0;
        std::memcpy(&stored, copy.scaleInv.data.data() + block * width, width);
        const float factor = familyOf(spec.scaling).dequantFactor(stored, copy.amaxOf(region.beginRow));
        region.forEach([&](auto row, auto col) {
          const auto byte = static_cast<std::uint8_t>(copy.data.data[places.byteOf(row, col)]);
          const auto code = static_cast<std::uint8_t>((byte >> places.shiftOf(col)) & places.mask());
          matrix.at(row, col) =
              visitFormat(spec.format, [&](auto codec) { return decltype(codec)::toFloat(code); }) * factor;
        });
      });
  return matrix;
}

Verdict check(const Tensor& x, const QuantizerSpec& spec, Copies copies) {
  const ScalingTraits& traits = traitsOf(spec.scaling);
  const bool isFp4 = spec.format == ElementFormat::E2M1;
  if (x.spec.dtype == DType::U8) return Verdict::no("A tensor of bytes cannot be quantized; give f32, f16 or bf16.");
  if (isFp4 != isNvfp4(spec.scaling))
    return Verdict::no(fmt::format("Scaling {} is for {}, but the format is {}.", traits.name,
                                   isFp4 ? "e4m3 and e5m2" : "e2m1", formatName(spec.format)));
  if (!spec.transformsColumnwise || copies == Copies::Rowwise) return Verdict::yes();
  if (!isFp4) return Verdict::no(fmt::format("Scaling {} has no random Hadamard transform.", traits.name));
  if (x.spec.rows() % kHadamardSize != 0)
    return Verdict::no(fmt::format("The random Hadamard transform needs rows in multiples of {}, but {} has {}.",
                                   kHadamardSize, toString(x.spec), x.spec.rows()));
  return Verdict::yes();
}

}  // namespace

Result<QuantizedTensor> quantize(const Tensor& x, const QuantizerSpec& spec, Copies copies,
                                 const QuantizerInputs& inputs) {
  if (const Verdict verdict = check(x, spec, copies); !verdict) return Error{verdict.reason()};
  const bool isTransformed = spec.transformsColumnwise && copies != Copies::Rowwise;
  QuantizedTensor tensor{.spec = {.nominal = x.spec,
                                  .format = spec.format,
                                  .scaling = spec.scaling,
                                  .isColumnwiseTransformed = isTransformed},
                         .rowwise = std::nullopt,
                         .columnwise = std::nullopt};
  const Matrix matrix = matrixOf(x);
  if (copies != Copies::Columnwise) tensor.rowwise = quantizeCopy(matrix, tensor.spec, spec, inputs, Usage::Rowwise);
  if (copies != Copies::Rowwise) tensor.columnwise = quantizeCopy(matrix, tensor.spec, spec, inputs, Usage::Columnwise);
  return tensor;
}

Result<Tensor> dequantize(const QuantizedTensor& tensor, Usage direction) {
  if (!tensor.copy(direction))
    return Error{fmt::format("The quantized tensor {} has no {} values.", toString(tensor.spec.nominal),
                             directionName(direction))};
  const QuantizedTensor compact = withScaleLayout(tensor, ScaleLayout::Compact);
  Matrix matrix = dequantizedCopy(*compact.copy(direction), tensor.spec, direction);
  if (direction == Usage::Columnwise) {
    if (tensor.spec.isColumnwiseTransformed) matrix = inverseRandomHadamard(matrix);
    if (traitsOf(tensor.spec.scaling).isColumnwiseTransposed) matrix = transposed(matrix);
  }
  return tensorOf(matrix, tensor.spec.nominal);
}

Verdict fitsGemm(const TensorSpec& tensor, Scaling scaling, Usage direction) {
  const BlockShape multiples = gemmMultiples(scaling, direction);
  if (tensor.rows() % multiples.rows == 0 && tensor.cols() % multiples.cols == 0) return Verdict::yes();
  return Verdict::no(fmt::format(
      "A GEMM with scaling {} needs multiples of {} rows and {} columns, but {} has {} rows and {} columns. Pad it, or "
      "keep it in high precision.",
      traitsOf(scaling).name, multiples.rows, multiples.cols, toString(tensor), tensor.rows(), tensor.cols()));
}

}  // namespace fuseline
