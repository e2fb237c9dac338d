// Reorders the elements of weights.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/weight_orders.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Pieces of equal size: that at place i is taken from place source(i).
template <class Source>
Tensor withPieces(const Tensor& from, std::int64_t count, const Source& source) {
  Tensor to = from;
  if (count == 0) return to;
  const auto bytes = static_cast<std::int64_t>(from.data.size()) / count;
  for (std::int64_t piece = 0; piece < count; ++piece)
    std::copy_n(from.data.begin() + source(piece) * bytes, bytes, to.data.begin() + piece * bytes);
  return to;
}

/// [outer, inner] as [inner, outer], for each of `count` pieces.
Tensor swapped(const Tensor& from, std::int64_t count, std::int64_t outer, std::int64_t inner) {
  const std::int64_t size = outer * inner;
  return withPieces(from, count * size, [=](std::int64_t piece) {
    const std::int64_t place = piece % size;
    return piece - place + place % outer * inner + place / outer;
  });
}

constexpr std::int64_t kQkv = 3;

}  // namespace

std::string withNumber(const std::string& pattern, std::string_view mark, std::size_t number) {
  const std::size_t place = pattern.find(mark);
  if (place == std::string::npos) return pattern;
  return fmt::format("{}{}{}", pattern.substr(0, place), number, pattern.substr(place + mark.size()));
}

Tensor transposed(const Tensor& from) {
  TensorSpec spec = from.spec;
  std::swap(spec.shape[spec.shape.size() - 1], spec.shape[spec.shape.size() - 2]);
  const std::int64_t rows = spec.shape[spec.shape.size() - 2];
  const std::int64_t cols = spec.shape.back();
  const auto element = static_cast<std::size_t>(sizeBytes(spec.dtype));
  Tensor to = Tensor::zeros(spec);
  for (std::int64_t row = 0; row < spec.rows(); ++row)
    for (std::int64_t col = 0; col < cols; ++col) {
      const std::int64_t source = (row / rows * cols + col) * rows + row % rows;
      std::memcpy(to.data.data() + static_cast<std::size_t>(row * cols + col) * element,
                  from.data.data() + static_cast<std::size_t>(source) * element, element);
    }
  return to;
}

Tensor withPairsApart(const Tensor& from) { return swapped(from, from.spec.shape[0], from.spec.shape[1] / 2, 2); }

Tensor withPairsBeside(const Tensor& from) { return swapped(from, from.spec.shape[0], 2, from.spec.shape[1] / 2); }

Tensor withHeadsTogether(const Tensor& from, std::int64_t heads) { return swapped(from, 1, heads, kQkv); }

Tensor withHeadsApart(const Tensor& from, std::int64_t heads) { return swapped(from, 1, kQkv, heads); }

Tensor rowsOf(const Tensor& from, std::int64_t first, std::int64_t count) {
  TensorSpec spec = from.spec;
  const std::int64_t total = std::max<std::int64_t>(1, spec.shape.front());
  spec.shape.front() = count;
  const auto bytes = static_cast<std::int64_t>(from.data.size()) / total;
  const auto begin = from.data.begin() + first * bytes;
  return {.spec = std::move(spec), .data = std::vector<std::byte>(begin, begin + count * bytes)};
}

}  // namespace fuseline
