// Quantization of tensors on all threads: equal to core/quant, bit for bit; and decoding for GEMMs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantizer.h"
#include "core/tensor/quantizer_spec.h"
#include "core/tensor/tensor_spec.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace fuseline::cpu {

/// The largest |value| of a tensor; 0 without values. NaN is ignored.
float amaxOf(const std::byte* values, const TensorSpec& spec);
/// The same of the random Hadamard transform of its columns.
float transformedAmaxOf(const std::byte* values, const TensorSpec& spec);
/// The same of some rows of the tensor, on the calling thread.
float amaxOfRows(const std::byte* rows, const TensorSpec& spec, std::int64_t count);

/// Writes the quantized tensor that `copy` describes (its quantized is set). amax: of x, if the scaling or the
/// transform needs it. Equal to fuseline::quantizeToMemory().
void quantizeCopy(const std::byte* x, const TensorSpec& source, const QuantizerSpec& quantizer,
                  const QuantizerInputs& inputs, float amax, const TensorSpec& copy, std::byte* memory);

/// Writes both quantized tensors of one tensor while its rows are computed: block by block, in any order, from any
/// thread. The same bits as quantizeCopy() writes.
class CopyRows {
 public:
  struct Copy {
    TensorSpec spec;
    std::byte* memory = nullptr;
  };

  /// Do the scales need no more than `blockRows()` rows at a time, and the amax of the whole tensor at most?
  static bool canMake(const TensorQuantizers& quantizers);

  /// amax: of the tensor, if scales follow from it and do not come with the inputs. Precondition: canMake().
  CopyRows(const TensorSpec& source, const TensorQuantizers& quantizers, const QuantizerInputs& inputs, float amax,
           const Copy& rowwise, const Copy& columnwise);
  CopyRows(CopyRows&&) noexcept;
  ~CopyRows();

  /// Rows come in blocks of a multiple of this number; only the last block may be shorter.
  static std::int64_t blockRows(const TensorQuantizers& quantizers);

  /// rows: count rows of the tensor, from row `first` on.
  void write(const std::byte* rows, std::int64_t first, std::int64_t count);
  /// The whole tensor, on all threads.
  void writeAll(const std::byte* x);

 private:
  struct Writers;
  std::unique_ptr<Writers> m_writers;
};

/// from: [rows, cols] encoded values of one byte; to: [cols, rows]. On all threads.
void transposeCodes(const std::uint8_t* from, std::int64_t rows, std::int64_t cols, std::uint8_t* to);

/// Produces the quantized tensors of a tensor on all threads, and reads it once for both if scales allow it. amax: of
/// x, if the scaling or a transform needs it.
void makeCopies(const std::byte* x, const TensorSpec& source, const TensorQuantizers& quantizers,
                const QuantizerInputs& inputs, float amax, const CopyRows::Copy& rowwise,
                const CopyRows::Copy& columnwise);

/// bf16 holds the values of a quantized tensor exactly, except for one factor of the whole tensor; float32 scales that
/// are no powers of two need float32.
DType decodedDType(const QuantizedForm& form, bool hasPowerOfTwoScales);

/// Writes the decoded values, without the factor of the whole tensor, in the quantized tensor's stored rows and columns
/// (of the transform, if it has one). out: elements of dtype. Returns that factor.
float decodeCopy(const std::byte* memory, const TensorSpec& copy, DType dtype, std::byte* out);

/// Returns that factor alone.
float factorOfCopy(const std::byte* memory, const TensorSpec& copy);

/// Writes the values with all factors, rounded once to dtype: for a quantized tensor that is neither transposed nor
/// transformed equal to core/quant's dequantize(), bit for bit.
void dequantizeCopy(const std::byte* memory, const TensorSpec& copy, DType dtype, std::byte* out);

}  // namespace fuseline::cpu
