// An index is a place among all elements, or one number for each axis.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/sparse_constants.h"

#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;

/// Nothing: an extent is negative, or there are very many elements.
std::optional<std::int64_t> numBytes(const ::onnx::SparseTensorProto& sparse) {
  std::int64_t bytes = elementSize(sparse.values().data_type());
  for (const std::int64_t extent : sparse.dims()) {
    if (extent < 0 || (extent > 0 && bytes > kMostBytes / extent)) return std::nullopt;
    bytes *= extent;
  }
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

/// Place of one element; -1: outside.
std::int64_t placeOf(const ::onnx::SparseTensorProto& sparse, const std::int64_t* index, bool isOfAxes) {
  std::int64_t place = 0, count = 1;
  for (const std::int64_t extent : sparse.dims()) {
    count *= extent;
    if (!isOfAxes) continue;
    if (*index < 0 || *index >= extent) return -1;
    place = place * extent + *index++;
  }
  if (!isOfAxes) place = *index;
  return place < 0 || place >= count ? -1 : place;
}

std::optional<::onnx::TensorProto> denseOf(const ::onnx::SparseTensorProto& sparse,
                                           const std::filesystem::path& folder) {
  const auto size = numBytes(sparse);
  if (!size || sparse.indices().data_type() != ::onnx::TensorProto::INT64) return std::nullopt;
  const auto values = elementBytes(sparse.values(), folder), indices = elementBytes(sparse.indices(), folder);
  if (!values || !indices) return std::nullopt;
  std::vector<std::int64_t> places(indices->size() / sizeof(std::int64_t));
  if (!places.empty()) std::memcpy(places.data(), indices->data(), places.size() * sizeof(std::int64_t));
  const bool isOfAxes = sparse.indices().dims_size() == 2;
  const auto step = static_cast<std::size_t>(isOfAxes ? sparse.dims_size() : 1);
  const auto width = static_cast<std::size_t>(elementSize(sparse.values().data_type()));
  if (places.size() / step != values->size() / width) return std::nullopt;
  std::string dense(static_cast<std::size_t>(*size), '\0');
  for (std::size_t i = 0; i < values->size() / width; ++i) {
    const std::int64_t place = placeOf(sparse, &places[i * step], isOfAxes);
    if (place < 0) return std::nullopt;
    std::memcpy(dense.data() + static_cast<std::size_t>(place) * width, values->data() + i * width, width);
  }
  ::onnx::TensorProto tensor;
  tensor.set_name(sparse.values().name());
  tensor.set_data_type(sparse.values().data_type());
  *tensor.mutable_dims() = sparse.dims();
  tensor.set_raw_data(std::move(dense));
  return tensor;
}

}  // namespace

void fillSparseConstants(::onnx::GraphProto& graph, const std::filesystem::path& folder) {
  for (const ::onnx::SparseTensorProto& sparse : graph.sparse_initializer())
    if (auto dense = denseOf(sparse, folder)) *graph.add_initializer() = std::move(*dense);
}

}  // namespace fuseline
