// Strips of stored rows: brought to float32, their blocks scaled, cast. A strip is one thread's work.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantize/quantized_copy.h"

#include "core/numerics/e8m0.h"
#include "core/numerics/random.h"
#include "core/quant/copy_memory.h"
#include "core/quant/hadamard.h"
#include "core/quant/rounding_bytes.h"
#include "core/quant/scalers.h"
#include "kernels/cpu/elementwise/strip_functions.h"
#include "kernels/cpu/quantize/block_functions.h"
#include "kernels/cpu/quantize/quantized_codecs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

namespace fuseline::cpu {

namespace {

/// Elements of a chunk of a whole tensor.
constexpr std::int64_t kChunk = 65536;
/// Stored rows of a strip if a block has one row.
constexpr std::int64_t kStripRows = 32;
/// Rows that are transposed at once.
constexpr auto kTileRows = static_cast<std::int64_t>(kTransposedSide);
/// Or do two encoded values share one?
bool takesAByte(ElementFormat format) { return codeBytes(format, 2) == 2; }

float amaxOf(const float* values, std::int64_t count) {
  static const AmaxFunction amax = amaxFunction(DType::F32);
  return amax(values, static_cast<std::size_t>(count));
}

void decodeRow(const std::byte* from, DType dtype, float* to, std::int64_t count) {
  if (dtype == DType::F32)
    std::copy_n(reinterpret_cast<const float*>(from), count, to);
  else
    decodeFunction(dtype)(to, from, nullptr, static_cast<std::size_t>(count));
}

/// out[col * stride + row] = in[row * cols + col].
template <class Element>
void transpose(const Element* in, std::int64_t rows, std::int64_t cols, Element* out, std::int64_t stride) {
  for (std::int64_t col = 0; col < cols; ++col)
    for (std::int64_t row = 0; row < rows; ++row) out[col * stride + row] = in[row * cols + col];
}

/// Transposes rows of bytes, tile by tile, into columns of an output whose rows are `stride` apart.
void transposeRows(const std::uint8_t* in, std::int64_t rows, std::int64_t cols, std::uint8_t* out,
                   std::int64_t stride) {
  for (std::int64_t first = 0; first < rows; first += kTileRows) {
    std::uint8_t tile[kTileRows * kTileRows];
    const std::int64_t count = std::min(kTileRows, rows - first);
    for (std::int64_t col = 0; col < cols; col += kTileRows) {
      const std::int64_t width = std::min(kTileRows, cols - col);
      if (width == kTileRows && count == kTileRows) {
        blockFunctions().transposeSquare(in + first * cols + col, static_cast<std::size_t>(cols),
                                         out + col * stride + first, static_cast<std::size_t>(stride));
        continue;
      }
      for (std::int64_t row = 0; row < count; ++row)
        std::memcpy(tile + row * width, in + (first + row) * cols + col, static_cast<std::size_t>(width));
      transpose(tile, count, width, out + col * stride + first, stride);
    }
  }
}

/// Multiplies the elements of a row, each by the factor of its block.
void multiplyBlocks(float* values, std::int64_t count, std::int64_t width, const float* factors) {
  for (std::int64_t begin = 0; begin < count; begin += width)
    blockFunctions().scale(values + begin, factors[begin / width],
                           static_cast<std::size_t>(std::min(width, count - begin)));
}

/// Per-thread memory that is kept between strips: allocating the pages of large strips costs more than casting. The
/// next call for the same element type overwrites it.
template <class Element>
std::span<Element> stripMemory(std::int64_t count) {
  static thread_local std::vector<Element> memory;
  const auto size = static_cast<std::size_t>(count);
  if (memory.size() < size) memory.resize(size);
  return {memory.data(), size};
}

/// Rows [first, first + count) of the matrix to quantize, before the cast, in float32.
class SourceStrips {
 public:
  /// firstRow: row of the tensor to which x points.
  SourceStrips(const std::byte* x, const TensorSpec& source, const QuantizedForm& form, std::int64_t firstRow = 0)
      : m_x(x),
        m_source(source),
        m_firstRow(firstRow),
        m_isTransposed(form.direction == Usage::Columnwise && traitsOf(form.scaling).isColumnwiseTransposed),
        m_isTransformed(form.isTransformed),
        m_matrix(storedMatrixOf(source, form.scaling, form.direction)) {}

  BlockShape matrix() const { return m_matrix; }

  /// Are the rows those of the unmodified tensor?
  bool isPlain() const { return !m_isTransposed && !m_isTransformed; }
  DType dtype() const { return m_source.dtype; }
  /// Row of a plain source.
  const std::byte* row(std::int64_t row) const { return address(row, 0); }

  /// Valid until this thread loads another strip.
  std::span<float> load(std::int64_t first, std::int64_t count) const {
    const std::span<float> strip = stripMemory<float>(count * m_matrix.cols);
    if (m_isTransposed)
      loadTransposed(first, count, strip.data());
    else
      for (std::int64_t row = 0; row < count; ++row) loadRow(first + row, strip.data() + row * m_matrix.cols);
    if (m_isTransformed) transform(strip, count);
    return strip;
  }

 private:
  const std::byte* address(std::int64_t row, std::int64_t col) const {
    return m_x + ((row - m_firstRow) * m_source.cols() + col) * sizeBytes(m_source.dtype);
  }

  void loadRow(std::int64_t row, float* out) const { decodeRow(address(row, 0), m_source.dtype, out, m_matrix.cols); }

  /// Columns [first, first + count) of x as rows, in tiles that stay in the cache.
  void loadTransposed(std::int64_t first, std::int64_t count, float* out) const {
    std::vector<float> tile(static_cast<std::size_t>(kTileRows * count));
    for (std::int64_t begin = 0; begin < m_matrix.cols; begin += kTileRows) {
      const std::int64_t rows = std::min(kTileRows, m_matrix.cols - begin);
      for (std::int64_t row = 0; row < rows; ++row)
        decodeRow(address(begin + row, first), m_source.dtype, tile.data() + row * count, count);
      transpose(tile.data(), rows, count, out + begin, m_matrix.cols);
    }
  }

  void transform(std::span<float> strip, std::int64_t count) const {
    std::ranges::copy(
        randomHadamard({.rows = count, .cols = m_matrix.cols, .values = {strip.begin(), strip.end()}}).values,
        strip.begin());
  }

  const std::byte* m_x;
  const TensorSpec& m_source;
  std::int64_t m_firstRow;
  bool m_isTransposed;
  bool m_isTransformed;
  BlockShape m_matrix;
};

/// Calls work(first, count) for strips of rows, on all threads.
template <class Work>
void forStrips(std::int64_t rows, std::int64_t height, Work work) {
  const std::int64_t numStrips = ceilDiv(rows, height);
#pragma omp parallel for schedule(dynamic) if (numStrips > 1)
  for (std::int64_t strip = 0; strip < numStrips; ++strip) {
    const std::int64_t first = strip * height;
    work(first, std::min(height, rows - first));
  }
}

float transformedAmax(const SourceStrips& source) {
  const BlockShape matrix = source.matrix();
  std::vector<float> parts(static_cast<std::size_t>(ceilDiv(matrix.rows, kStripRows)));
  forStrips(matrix.rows, kStripRows, [&](std::int64_t first, std::int64_t count) {
    parts[static_cast<std::size_t>(first / kStripRows)] = amaxOf(source.load(first, count).data(), count * matrix.cols);
  });
  return parts.empty() ? 0.0F : *std::ranges::max_element(parts);
}

/// Casts runs of a stored row that share a multiplier.
class Caster {
 public:
  /// dtype: of the tensor.
  Caster(const QuantizerSpec& spec, const QuantizerInputs& inputs, Usage direction, DType dtype)
      : m_format(spec.format),
        m_dtype(dtype),
        m_isStochastic(spec.roundsStochastically),
        m_random(roundingBytes(inputs.seed, inputs.name, direction)),
        m_fromFloat(codecsOf(spec.format, DType::F32)),
        m_direct(codecsOf(spec.format, dtype)) {}

  /// Can this dtype be encoded without conversion to float32?
  bool isDirect(DType dtype) const { return !m_isStochastic && dtype == m_dtype; }
  const Codecs& direct() const { return m_direct; }

  /// index: of the first element in its quantized tensor, even if two elements share a byte.
  void cast(const float* values, float multiplier, std::int64_t count, std::int64_t index, std::uint8_t* codes) const {
    if (m_isStochastic)
      visitFormat(m_format, [&](auto codec) { castStochastically(codec, values, multiplier, count, index, codes); });
    else
      m_fromFloat.quantize(codes, values, multiplier, static_cast<std::size_t>(count));
  }

 private:
  template <class Format>
  void castStochastically(Format, const float* values, float multiplier, std::int64_t count, std::int64_t index,
                          std::uint8_t* codes) const {
    constexpr bool kIsPacked = Format::kBits == 4;
    std::vector<std::uint8_t> random(static_cast<std::size_t>(count));
    m_random.fill(static_cast<std::uint64_t>(index), random);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint8_t code =
          Format::fromFloatStochastic(values[i] * multiplier, random[static_cast<std::size_t>(i)]);
      if (!kIsPacked)
        codes[i] = code;
      else
        codes[i / 2] = static_cast<std::uint8_t>(i % 2 == 0 ? code : codes[i / 2] | (code << 4));
    }
  }

  ElementFormat m_format;
  DType m_dtype;
  bool m_isStochastic;
  RandomBytes m_random;
  const Codecs& m_fromFloat;
  const Codecs& m_direct;  // from m_dtype
};

class CopyWriter {
 public:
  CopyWriter(const QuantizerSpec& spec, const QuantizerInputs& inputs, float amax, const TensorSpec& copy,
             std::byte* memory)
      : m_form(*copy.quantized),
        m_parts(partsOf(copy)),
        m_matrix(storedMatrixOf(copy, m_form.scaling, m_form.direction)),
        m_block(blockOf(m_form.scaling, m_form.direction)),
        m_grid(blockGridOf(copy, m_form.scaling, m_form.direction)),
        m_places(scalePlacesOf(copy, m_form.scaling, m_form.direction)),
        m_scaleOf(familyOf(m_form.scaling).makeScaler({spec, inputs, copy.dtype, amax})),
        m_caster(spec, inputs, m_form.direction, copy.dtype),
        m_raiseBlocks(raiseBlocksFunction(copy.dtype)),
        m_scaleBytes(traitsOf(m_form.scaling).scaleFormat == ScaleFormat::F32 ? 4 : 1),
        m_memory(memory) {
    if (m_block.rows == 0) m_block.cols = m_matrix.cols;
  }

  void write(const SourceStrips& source) {
    begin();
    const std::int64_t height = m_block.rows > 1 ? m_block.rows : kStripRows;
    forStrips(m_matrix.rows, height, [&](std::int64_t first, std::int64_t count) { writeStrip(source, first, count); });
  }

  const QuantizedForm& form() const { return m_form; }

  /// Stores the parts that do not depend on the values: the scale of a whole tensor, or the padding of block scales.
  void begin() {
    if (m_block.rows == 0) return m_scaleOf({&m_multiplier, 1}, scaleAt(0, 0));
    if (m_places.count > m_grid.rows * m_grid.cols) std::fill_n(scaleAt(0, 0), m_parts.scalesBytes, std::byte{0});
  }

  /// Whole blocks of stored rows.
  void writeStrip(const SourceStrips& source, std::int64_t first, std::int64_t count) {
    if (m_block.rows == 0) return castRows(source, first, count, codesOf(first));
    if (isDirect(source)) return writeBlocks(source, first, count);
    const std::span<float> strip = source.load(first, count);
    const std::int64_t height = m_block.rows;
    for (std::int64_t row = 0; row < count; row += height) {
      const std::int64_t rows = std::min(height, count - row);
      float* const values = strip.data() + row * m_matrix.cols;
      const std::vector<float> multipliers = scales(values, (first + row) / height, rows);
      for (std::int64_t inner = 0; inner < rows; ++inner)
        multiplyBlocks(values + inner * m_matrix.cols, m_matrix.cols, m_block.cols, multipliers.data());
      castRows(values, first + row, rows, 1.0F);
    }
  }

  /// Rows [first, first + count) of the tensor, whose columns are the stored rows; whole blocks.
  void writeColumns(const SourceStrips& rows, std::int64_t first, std::int64_t count) {
    const std::span<std::uint8_t> codes = stripMemory<std::uint8_t>(count * m_matrix.rows);
    if (m_block.rows == 0)
      castRows(rows, first, count, codes.data());
    else
      castColumns(rows, first, count, columnMultipliers(rows, first, count), codes.data());
    writeColumns(codes.data(), first, count);
  }
  /// The same for encoded values of one byte each.
  void writeColumns(const std::uint8_t* codes, std::int64_t first, std::int64_t count) {
    transposeRows(codes, count, m_matrix.rows, codesOf(0) + first, m_matrix.cols);
  }

  /// Writes the transpose of these rows of the rowwise quantized tensor.
  void writeTransposed(const CopyWriter& rowwise, std::int64_t first, std::int64_t count) {
    writeColumns(rowwise.codesOf(first), first, count);
    if (m_block.rows == 0) return;
    const std::int64_t blockRow = first / m_block.cols;
    for (std::int64_t block = 0; block < m_grid.rows; ++block)
      std::memcpy(scaleAt(block, blockRow), rowwise.scaleAt(blockRow, block), sizeof(float));
  }

  std::uint8_t* codesOf(std::int64_t row) const {
    return reinterpret_cast<std::uint8_t*>(m_memory) + row * codeBytes(m_form.format, m_matrix.cols);
  }

 private:
  /// Can one-byte values be encoded directly from the stored tensor?
  bool isDirect(const SourceStrips& source) const {
    return source.isPlain() && m_caster.isDirect(source.dtype()) && takesAByte(m_form.format);
  }

  void castColumns(const SourceStrips& source, std::int64_t first, std::int64_t count,
                   const std::vector<float>& multipliers, std::uint8_t* codes) const {
    m_caster.direct().quantizeColumns(codes, source.row(first), multipliers.data(), static_cast<std::size_t>(count),
                                      multipliers.size());
  }

  /// Blocks of one column, or of several.
  void writeBlocks(const SourceStrips& source, std::int64_t first, std::int64_t count) {
    for (std::int64_t row = first; row < first + count; row += m_block.rows) {
      const std::int64_t rows = std::min(m_block.rows, first + count - row);
      if (m_block.cols == 1)
        castColumns(source, row, rows, rowMultipliers(source, row, rows), codesOf(row));
      else
        writeRowOfBlocks(source, row, rows);
    }
  }

  void writeRowOfBlocks(const SourceStrips& source, std::int64_t first, std::int64_t rows) {
    const auto cols = static_cast<std::size_t>(m_matrix.cols);
    const auto width = static_cast<std::size_t>(m_block.cols);
    const std::span<float> multipliers = stripMemory<float>(m_grid.cols).first(static_cast<std::size_t>(m_grid.cols));
    std::ranges::fill(multipliers, 0.0F);
    for (std::int64_t row = first; row < first + rows; ++row)
      m_raiseBlocks(multipliers.data(), source.row(row), width, cols);
    storeScales(multipliers, first / m_block.rows);
    for (std::int64_t row = first; row < first + rows; ++row)
      m_caster.direct().quantizeBlocks(codesOf(row), source.row(row), multipliers.data(), width, cols);
  }

  /// The largest magnitude in each column of some rows. NaN is ignored.
  static std::vector<float> amaxesOfColumns(const SourceStrips& source, std::int64_t first, std::int64_t count) {
    std::vector<float> amaxes(static_cast<std::size_t>(source.matrix().cols));
    const RaiseFunction raise = raiseFunction(source.dtype());
    for (std::int64_t row = first; row < first + count; ++row) raise(amaxes.data(), source.row(row), amaxes.size());
    return amaxes;
  }

  /// Finds and stores the scales of one row of blocks of one column. The multiplier of each column.
  std::vector<float> rowMultipliers(const SourceStrips& source, std::int64_t first, std::int64_t rows) {
    std::vector<float> values = amaxesOfColumns(source, first, rows);
    storeScales(values, first / m_block.rows);
    return values;
  }

  /// Finds and stores the scales of one column of blocks. The multiplier of each stored row.
  std::vector<float> columnMultipliers(const SourceStrips& rows, std::int64_t first, std::int64_t count) {
    std::vector<float> values = amaxesOfColumns(rows, first, count);
    for (std::int64_t block = 0; block < m_grid.rows; ++block) {
      const std::span<float> column = std::span(values).subspan(
          static_cast<std::size_t>(block * m_block.rows),
          static_cast<std::size_t>(std::min(m_block.rows, m_matrix.rows - block * m_block.rows)));
      float multiplier = *std::ranges::max_element(column);
      m_scaleOf({&multiplier, 1}, scaleAt(block, first / m_block.cols));
      std::ranges::fill(column, multiplier);
    }
    return values;
  }

  /// Finds and stores the scales of one row of blocks; returns the multipliers.
  std::vector<float> scales(const float* values, std::int64_t blockRow, std::int64_t rows) {
    std::vector<float> multipliers(static_cast<std::size_t>(m_grid.cols));
    for (std::int64_t row = 0; row < rows; ++row)
      raiseBlocksFunction(DType::F32)(multipliers.data(), values + row * m_matrix.cols,
                                      static_cast<std::size_t>(m_block.cols), static_cast<std::size_t>(m_matrix.cols));
    storeScales(multipliers, blockRow);
    return multipliers;
  }

  /// amaxes: of one row of blocks; they become multipliers.
  void storeScales(std::span<float> amaxes, std::int64_t blockRow) {
    if (m_places.colStride == 1) return m_scaleOf(amaxes, scaleAt(blockRow, 0));
    for (std::size_t col = 0; col < amaxes.size(); ++col)
      m_scaleOf(amaxes.subspan(col, 1), scaleAt(blockRow, static_cast<std::int64_t>(col)));
  }

  std::byte* scaleAt(std::int64_t blockRow, std::int64_t blockCol) const {
    const std::int64_t index = blockRow * m_places.rowStride + blockCol * m_places.colStride;
    return m_memory + m_parts.scalesOffset + index * m_scaleBytes;
  }

  /// With the one scale of a tensor, one row of encoded values after the other.
  void castRows(const SourceStrips& source, std::int64_t first, std::int64_t rows, std::uint8_t* codes) const {
    const std::int64_t cols = source.matrix().cols;
    if (source.isPlain() && m_caster.isDirect(source.dtype()) && cols % 2 == 0)
      return m_caster.direct().quantize(codes, source.row(first), m_multiplier, static_cast<std::size_t>(rows * cols));
    const std::span<float> strip = source.load(first, rows);
    for (std::int64_t row = 0; row < rows; ++row)
      m_caster.cast(strip.data() + row * cols, m_multiplier, cols, (first + row) * cols,
                    codes + row * codeBytes(m_form.format, cols));
  }

  void castRows(const float* values, std::int64_t first, std::int64_t rows, float multiplier) {
    for (std::int64_t row = 0; row < rows; ++row)
      m_caster.cast(values + row * m_matrix.cols, multiplier, m_matrix.cols, (first + row) * m_matrix.cols,
                    codesOf(first + row));
  }

  QuantizedForm m_form;
  CopyParts m_parts;
  BlockShape m_matrix;
  BlockShape m_block;
  BlockShape m_grid;
  ScalePlaces m_places;
  BlockScaler m_scaleOf;
  Caster m_caster;
  RaiseBlocksFunction m_raiseBlocks;
  std::int64_t m_scaleBytes;
  float m_multiplier = 0.0F;  // of a whole tensor
  std::byte* m_memory;
};

}  // namespace

float amaxOf(const std::byte* values, const TensorSpec& spec) {
  const std::int64_t elements = spec.numElements();
  std::vector<float> parts(static_cast<std::size_t>(ceilDiv(elements, kChunk)));
  const AmaxFunction amax = amaxFunction(spec.dtype);
  forStrips(elements, kChunk, [&](std::int64_t first, std::int64_t count) {
    parts[static_cast<std::size_t>(first / kChunk)] =
        amax(values + first * sizeBytes(spec.dtype), static_cast<std::size_t>(count));
  });
  return parts.empty() ? 0.0F : *std::ranges::max_element(parts);
}

float amaxOfRows(const std::byte* rows, const TensorSpec& spec, std::int64_t count) {
  return amaxFunction(spec.dtype)(rows, static_cast<std::size_t>(count * spec.cols()));
}

namespace {

/// As core/quant does it: a block's scale follows from all of its elements, or from its row's amax.
void quantizeBlockByBlock(const std::byte* x, const TensorSpec& source, const QuantizerSpec& quantizer,
                          const QuantizerInputs& inputs, float amax, const TensorSpec& copy, std::byte* memory) {
  Tensor tensor = Tensor::zeros(source);
  std::copy_n(x, tensor.data.size(), tensor.data.begin());
  QuantizerInputs known = inputs;
  known.amax = amax;
  const Result<void> made = quantizeToMemory(tensor, quantizer, known, copy, memory);
  if (!made) throw std::runtime_error(made.error().message);
}

}  // namespace

float transformedAmaxOf(const std::byte* values, const TensorSpec& spec) {
  const QuantizedForm form{
      .format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16, .direction = Usage::Columnwise, .isTransformed = true};
  return transformedAmax(SourceStrips(values, spec, form));
}

void quantizeCopy(const std::byte* x, const TensorSpec& source, const QuantizerSpec& quantizer,
                  const QuantizerInputs& inputs, float amax, const TensorSpec& copy, std::byte* memory) {
  if (quantizer.fourOverSix || quantizer.scaling == Scaling::NvRow1x16)
    return quantizeBlockByBlock(x, source, quantizer, inputs, amax, copy, memory);
  const SourceStrips strips(x, source, *copy.quantized);
  const bool isOwnAmax = copy.quantized->isTransformed && !inputs.transformedAmax;
  const float known = copy.quantized->isTransformed ? inputs.transformedAmax.value_or(0.0F) : amax;
  const float used = isOwnAmax ? transformedAmax(strips) : known;
  CopyWriter(quantizer, inputs, used, copy, memory).write(strips);
  const CopyParts parts = partsOf(copy);
  if (parts.totalBytes > parts.amaxOffset) std::memcpy(memory + parts.amaxOffset, &used, sizeof(used));
}

struct CopyRows::Writers {
  TensorSpec source;
  std::optional<CopyWriter> rowwise;
  std::optional<CopyWriter> columnwise;
  /// One scale a tensor, or square blocks: the columnwise copy is the transpose of the rowwise one.
  bool sharesCodes = false;
  std::int64_t blockRows = 1;

  void write(const std::byte* rows, std::int64_t first, std::int64_t count) {
    if (rowwise) rowwise->writeStrip(SourceStrips(rows, source, rowwise->form(), first), first, count);
    if (columnwise) writeColumnwise(rows, first, count);
  }

  void writeColumnwise(const std::byte* rows, std::int64_t first, std::int64_t count) {
    if (sharesCodes) return columnwise->writeTransposed(*rowwise, first, count);
    QuantizedForm standing = columnwise->form();
    if (!traitsOf(standing.scaling).isColumnwiseTransposed)
      return columnwise->writeStrip(SourceStrips(rows, source, standing, first), first, count);
    standing.direction = Usage::Rowwise;
    columnwise->writeColumns(SourceStrips(rows, source, standing, first), first, count);
  }
};

bool CopyRows::canMake(const TensorQuantizers& quantizers) {
  const auto isByRows = [](const std::optional<QuantizerSpec>& quantizer) {
    return !quantizer || (!quantizer->isOfRowwise && !quantizer->transformsColumnwise &&
                          !quantizer->roundsStochastically && !isNvfp4(quantizer->scaling));
  };
  return isByRows(quantizers.rowwise) && isByRows(quantizers.columnwise);
}

CopyRows::CopyRows(const TensorSpec& source, const TensorQuantizers& quantizers, const QuantizerInputs& inputs,
                   float amax, const Copy& rowwise, const Copy& columnwise)
    : m_writers(std::make_unique<Writers>()) {
  m_writers->source = source;
  m_writers->blockRows = blockRows(quantizers);
  const auto open = [&](const std::optional<QuantizerSpec>& quantizer, const Copy& copy,
                        std::optional<CopyWriter>& writer) {
    if (quantizer && copy.memory) writer.emplace(*quantizer, inputs, amax, copy.spec, copy.memory).begin();
  };
  open(quantizers.rowwise, rowwise, m_writers->rowwise);
  open(quantizers.columnwise, columnwise, m_writers->columnwise);
  m_writers->sharesCodes =
      m_writers->rowwise && m_writers->columnwise && quantizers.rowwise == quantizers.columnwise &&
      (quantizers.rowwise->scaling == Scaling::PerTensor || quantizers.rowwise->scaling == Scaling::Block128x128);
}

CopyRows::CopyRows(CopyRows&&) noexcept = default;
CopyRows::~CopyRows() = default;

std::int64_t CopyRows::blockRows(const TensorQuantizers& quantizers) {
  std::int64_t rows = kStripRows;
  for (const Usage direction : {Usage::Rowwise, Usage::Columnwise}) {
    const std::optional<QuantizerSpec>& quantizer = quantizers.of(direction);
    if (!quantizer) continue;
    const BlockShape block = blockOf(quantizer->scaling, direction);
    const bool isTransposed = direction == Usage::Columnwise && traitsOf(quantizer->scaling).isColumnwiseTransposed;
    rows = std::max(rows, isTransposed ? std::max(block.cols, kTileRows) : block.rows);
  }
  return rows;
}

void CopyRows::writeAll(const std::byte* x) {
  const TensorSpec& source = m_writers->source;
  const std::int64_t rowBytes = source.cols() * sizeBytes(source.dtype);
  forStrips(source.rows(), m_writers->blockRows,
            [&](std::int64_t first, std::int64_t count) { write(x + first * rowBytes, first, count); });
}

void CopyRows::write(const std::byte* rows, std::int64_t first, std::int64_t count) {
  const std::int64_t rowBytes = m_writers->source.cols() * sizeBytes(m_writers->source.dtype);
  for (std::int64_t row = 0; row < count; row += m_writers->blockRows)
    m_writers->write(rows + row * rowBytes, first + row, std::min(m_writers->blockRows, count - row));
}

namespace {

/// Quantizes the dequantized rowwise tensor columnwise.
void makeOfRowwise(const TensorSpec& source, const QuantizerSpec& quantizer, const QuantizerInputs& inputs,
                   const CopyRows::Copy& rowwise, const CopyRows::Copy& columnwise) {
  if (!columnwise.memory) return;
  const Tensor x = dequantizedTensor(rowwise.spec, rowwise.memory);
  quantizeCopy(x.data.data(), source, quantizer, inputs, cpu::amaxOf(x.data.data(), source), columnwise.spec,
               columnwise.memory);
}

}  // namespace

void makeCopies(const std::byte* x, const TensorSpec& source, const TensorQuantizers& quantizers,
                const QuantizerInputs& inputs, float amax, const CopyRows::Copy& rowwise,
                const CopyRows::Copy& columnwise) {
  if (CopyRows::canMake(quantizers)) return CopyRows(source, quantizers, inputs, amax, rowwise, columnwise).writeAll(x);
  const auto make = [&](const std::optional<QuantizerSpec>& quantizer, const CopyRows::Copy& copy) {
    if (quantizer && copy.memory) quantizeCopy(x, source, *quantizer, inputs, amax, copy.spec, copy.memory);
  };
  make(quantizers.rowwise, rowwise);
  if (quantizers.columnwise && quantizers.columnwise->isOfRowwise)
    return makeOfRowwise(source, *quantizers.columnwise, inputs, rowwise, columnwise);
  make(quantizers.columnwise, columnwise);
}

void transposeCodes(const std::uint8_t* from, std::int64_t rows, std::int64_t cols, std::uint8_t* to) {
  forStrips(rows, kTileRows, [&](std::int64_t first, std::int64_t count) {
    transposeRows(from + first * cols, count, cols, to + first, rows);
  });
}

DType decodedDType(const QuantizedForm& form, bool hasPowerOfTwoScales) {
  const bool isOfRows = form.scaling == Scaling::NvRow1x16;
  return isOfRows || (isOfBlocksOf128(form.scaling) && !hasPowerOfTwoScales) ? DType::F32 : DType::BF16;
}

namespace {

/// The factors by which a reader multiplies the decoded values: all but that of the whole tensor, or all.
enum class Factors { OfBlocks, All };

/// Decodes the stored rows of a quantized tensor.
class CopyReader {
 public:
  CopyReader(const std::byte* memory, const TensorSpec& copy, DType dtype, Factors factors)
      : m_memory(memory),
        m_factors(factors),
        m_form(*copy.quantized),
        m_parts(partsOf(copy)),
        m_matrix(storedMatrixOf(copy, m_form.scaling, m_form.direction)),
        m_block(blockOf(m_form.scaling, m_form.direction)),
        m_grid(blockGridOf(copy, m_form.scaling, m_form.direction)),
        m_places(scalePlacesOf(copy, m_form.scaling, m_form.direction)),
        m_dtype(dtype),
        m_codecs(codecsOf(m_form.format, dtype)),
        m_toFloat(codecsOf(m_form.format, DType::F32)) {}

  void read(std::byte* out) const {
    const bool isPerTensor = m_block.rows == 0;
    const std::int64_t height = m_block.rows > 1 ? m_block.rows : kStripRows;
    forStrips(m_matrix.rows, height, [&](std::int64_t first, std::int64_t count) {
      std::byte* const rows = out + first * m_matrix.cols * sizeBytes(m_dtype);
      isPerTensor ? readRows(first, count, rows) : readBlocks(first, count, rows);
    });
  }

  /// The factor of all values of the tensor.
  float factor() const {
    float value = 1.0F;
    const bool isPerTensor = m_block.rows == 0;
    if (isPerTensor) std::memcpy(&value, m_memory + m_parts.scalesOffset, sizeof(value));
    return hasAmax() && !isOfRows() ? nvDequantFactor(E4m3::fromFloat(1.0F), amax(0)) : value;
  }

 private:
  bool hasAmax() const { return m_parts.numAmaxes > 0; }
  bool isOfRows() const { return m_form.scaling == Scaling::NvRow1x16; }
  float amax(std::int64_t row) const {
    float value = 0.0F;
    std::memcpy(&value, m_memory + m_parts.amaxOffset + sizeof(value) * static_cast<std::size_t>(row), sizeof(value));
    return value;
  }

  const std::uint8_t* codes(std::int64_t row) const {
    return reinterpret_cast<const std::uint8_t*>(m_memory) + row * codeBytes(m_form.format, m_matrix.cols);
  }

  /// The scales of one row of blocks.
  std::vector<float> scales(std::int64_t blockRow) const {
    std::vector<float> values(static_cast<std::size_t>(m_grid.cols));
    const std::byte* const from = m_memory + m_parts.scalesOffset;
    const auto indexOf = [&](std::size_t col) {
      return blockRow * m_places.rowStride + static_cast<std::int64_t>(col) * m_places.colStride;
    };
    const auto decodeWith = [&](auto toFloat) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = toFloat(static_cast<std::uint8_t>(from[indexOf(i)]));
    };
    switch (traitsOf(m_form.scaling).scaleFormat) {
      case ScaleFormat::F32:
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = reinterpret_cast<const float*>(from)[indexOf(i)];
        break;
      case ScaleFormat::E8M0: decodeWith([](std::uint8_t code) { return E8m0::toFloat(code); }); break;
      case ScaleFormat::E4M3:
        decodeWith([&](std::uint8_t code) { return nvFactor(code, isOfRows() ? blockRow : 0); });
        break;
    }
    return values;
  }

  float nvFactor(std::uint8_t code, std::int64_t row) const {
    return m_factors == Factors::All || isOfRows() ? nvDequantFactor(code, amax(row)) : E4m3::toFloat(code);
  }

  void readRows(std::int64_t first, std::int64_t count, std::byte* out) const {
    const float scale = m_factors == Factors::All ? factor() : 1.0F;
    for (std::int64_t row = 0; row < count; ++row)
      m_codecs.dequantize(out + row * m_matrix.cols * sizeBytes(m_dtype), codes(first + row), scale,
                          static_cast<std::size_t>(m_matrix.cols));
  }

  /// Rows that share a row of blocks, one after the other.
  void readBlocks(std::int64_t first, std::int64_t count, std::byte* out) const {
    for (std::int64_t row = first; row < first + count; row += m_block.rows) {
      const std::int64_t rows = std::min(m_block.rows, first + count - row);
      readRowOfBlocks(row, rows, scales(row / m_block.rows), out + (row - first) * m_matrix.cols * sizeBytes(m_dtype));
    }
  }

  void readRowOfBlocks(std::int64_t first, std::int64_t rows, const std::vector<float>& factors, std::byte* out) const {
    const auto cols = static_cast<std::size_t>(m_matrix.cols);
    if (m_block.cols == 1 && takesAByte(m_form.format))
      return m_codecs.dequantizeColumns(out, codes(first), factors.data(), static_cast<std::size_t>(rows), cols);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::byte* const rowOut = out + row * m_matrix.cols * sizeBytes(m_dtype);
      if (takesAByte(m_form.format))
        m_codecs.dequantizeBlocks(rowOut, codes(first + row), factors.data(), static_cast<std::size_t>(m_block.cols),
                                  cols);
      else
        readPairs(first + row, factors, rowOut);
    }
  }

  void readPairs(std::int64_t row, const std::vector<float>& factors, std::byte* out) const {
    const std::span<float> values = stripMemory<float>(m_matrix.cols).first(static_cast<std::size_t>(m_matrix.cols));
    m_toFloat.dequantize(values.data(), codes(row), 1.0F, values.size());
    multiplyBlocks(values.data(), m_matrix.cols, m_block.cols, factors.data());
    writeRow(values, out);
  }

  void writeRow(std::span<const float> values, std::byte* out) const {
    if (m_dtype == DType::F32)
      std::ranges::copy(values, reinterpret_cast<float*>(out));
    else
      encodeFunction(m_dtype)(out, values.data(), nullptr, values.size());
  }

  const std::byte* m_memory;
  Factors m_factors;
  QuantizedForm m_form;
  CopyParts m_parts;
  BlockShape m_matrix;
  BlockShape m_block;
  BlockShape m_grid;
  ScalePlaces m_places;
  DType m_dtype;
  const Codecs& m_codecs;  // to m_dtype
  const Codecs& m_toFloat;
};

}  // namespace

float decodeCopy(const std::byte* memory, const TensorSpec& copy, DType dtype, std::byte* out) {
  const CopyReader reader(memory, copy, dtype, Factors::OfBlocks);
  reader.read(out);
  return reader.factor();
}

float factorOfCopy(const std::byte* memory, const TensorSpec& copy) {
  return CopyReader(memory, copy, DType::F32, Factors::OfBlocks).factor();
}

void dequantizeCopy(const std::byte* memory, const TensorSpec& copy, DType dtype, std::byte* out) {
  CopyReader(memory, copy, dtype, Factors::All).read(out);
}

}  // namespace fuseline::cpu
