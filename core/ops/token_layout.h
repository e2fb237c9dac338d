// Tensors of heads, such as the queries of attention: where the tokens of each sequence stand (TransformerEngine's
// qkv_format).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// sbhd: [S, B, H, D]. bshd: [B, S, H, D]. thd: [T, H, D], sequences of different lengths one after another.
enum class QkvFormat { Sbhd, Bshd, Thd };

AttributeSpec qkvFormatAttribute(std::string name, std::string help);
/// format: one of the attribute's choices.
QkvFormat qkvFormat(std::string_view format);

/// A tensor of heads by its strides, in elements.
/// thd: one batch entry of T tokens.
struct TokenLayout {
  std::int64_t batch = 1;
  std::int64_t tokens = 0;  // of one batch entry
  std::int64_t heads = 1;
  std::int64_t channels = 1;  // of one head, D
  std::int64_t batchStride = 0;
  std::int64_t tokenStride = 0;
  std::int64_t headStride = 0;

  /// Offset of the first element of a head of a token.
  std::int64_t offset(std::int64_t entry, std::int64_t token, std::int64_t head) const {
    return entry * batchStride + token * tokenStride + head * headStride;
  }
  /// Do the heads of a token follow each other?
  bool hasContiguousHeads() const { return headStride == channels; }
  /// The same heads as columns of a wider tensor: `width` elements, all heads of a token or one head, in each row of
  /// `stride` elements; 0: as they are. Precondition: contiguous.
  TokenLayout inRows(std::int64_t width, std::int64_t stride) const;
};

/// x: [.., heads, channels] or [.., heads * channels], its first axes those of the format.
/// Errors: "DotProductAttention: k has the shape [8, 2, 64]; expected [S, B, 4, 32] or [S, B, 128] for sbhd, ..."
Result<TokenLayout> tokenLayout(std::string_view operation, std::string_view port, QkvFormat format, const Shape& shape,
                                std::int64_t heads, std::int64_t channels);

/// Tokens [first, first + size) of a batch entry.
struct TokenSpan {
  std::int64_t first = 0;
  std::int64_t size = 0;
};

/// A port for prefix sums of sequence lengths, [B + 1]. slot: its own; counted: that of the input whose tokens they
/// count.
Port cuSeqlensPort(std::string name, QkvFormat format, int slot, int counted);
/// An error unless there is one sum more than sequences.
std::optional<Error> checkCuSeqlens(std::string_view operation, std::string_view port, QkvFormat format,
                                    const TensorSpec& cuSeqlens, const TokenLayout& layout);

/// The sequences that the sums describe; without sums each batch entry is one. thd: the sums are positions. Otherwise
/// only their differences count, and each sequence starts at the first token of its batch entry.
/// Errors: sums that do not start at 0, decrease or exceed the tokens:
/// "cu_seqlens_q is [0, 4, 9]; there are only 8 tokens."
Result<std::vector<TokenSpan>> sequencesOf(QkvFormat format, const TokenLayout& layout, std::string_view port,
                                           std::span<const std::int64_t> cuSeqlens);

/// The number of sequences that a tensor of prefix sums describes.
std::int64_t numSequences(const TensorSpec& cuSeqlens);

}  // namespace fuseline
