// A row a thread. Sums are made in float32.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/model/moved_rows.h"

#include "core/tensor/tensor.h"
#include "kernels/cpu/attention/attention_functions.h"
#include "kernels/cpu/norm/norm_functions.h"

#include <algorithm>
#include <cstring>

#include <omp.h>

namespace fuseline::cpu {

namespace {
namespace moved_rows_parts {

/// Bytes that are worth waking a thread for.
constexpr std::int64_t kBytesPerThread = 1 << 16;

int threadsFor(const MovedRows& rows, std::size_t numRows) {
  const std::int64_t bytes = static_cast<std::int64_t>(numRows) * rows.width * sizeBytes(rows.dtype);
  return static_cast<int>(std::clamp<std::int64_t>(bytes / kBytesPerThread, 1, rows.threads));
}

RowsOf rowAt(const MovedRows& rows, const std::byte* data, std::int64_t row) {
  // Only read where data is the source.
  const std::int64_t stride = data == rows.from && rows.fromStride > 0 ? rows.fromStride : rows.width;
  return {.data = const_cast<std::byte*>(data) + row * stride * sizeBytes(rows.dtype), .stride = stride};
}

/// Two rows in float32 of the current thread.
float* ownRows(const MovedRows& rows, std::byte* workspace) {
  return reinterpret_cast<float*>(workspace) + omp_get_thread_num() * 2 * paddedWidth(rows.width);
}

}  // namespace moved_rows_parts
}  // namespace

std::size_t movedRowsBytes(std::int64_t width, int threads) {
  return static_cast<std::size_t>(threads) * 2 * static_cast<std::size_t>(paddedWidth(width)) * sizeof(float);
}

void copyRows(const MovedRows& rows, std::span<const std::int64_t> sources, std::int64_t divisor) {
  using namespace moved_rows_parts;
  const auto rowBytes = static_cast<std::size_t>(rows.width * sizeBytes(rows.dtype));
  if (rowBytes == 0) return;
  const int threads = threadsFor(rows, sources.size());
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::byte* const to = rows.to + i * rowBytes;
    if (sources[i] < 0)
      std::memset(to, 0, rowBytes);
    else
      std::memcpy(to, rows.from + static_cast<std::size_t>(sources[i] / divisor) * rowBytes, rowBytes);
  }
}

void scaleRows(const MovedRows& rows, std::span<const std::int64_t> sources, std::int64_t divisor,
               std::span<const float> factors, std::byte* workspace) {
  using namespace moved_rows_parts;
  const HeadRowFunctions& functions = headRowFunctions(rows.dtype);
  const std::int64_t padded = paddedWidth(rows.width);
  const int threads = threadsFor(rows, sources.size());
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (std::size_t i = 0; i < sources.size(); ++i) {
    float* const own = ownRows(rows, workspace);
    if (sources[i] < 0)
      std::fill_n(own, padded, 0.0F);
    else
      functions.read(rowAt(rows, rows.from, sources[i] / divisor), 1, rows.width,
                     factors[static_cast<std::size_t>(sources[i])], own, padded);
    functions.write(own, padded, 1, rows.width, nullptr, 1.0F, rowAt(rows, rows.to, static_cast<std::int64_t>(i)));
  }
}

void sumRows(const MovedRows& rows, std::span<const std::int64_t> sources, std::int64_t terms,
             std::span<const float> factors, std::byte* workspace, std::span<const std::byte* const> addends) {
  using namespace moved_rows_parts;
  if (terms == 0) return;
  const HeadRowFunctions& functions = headRowFunctions(rows.dtype);
  const AddFunction add = addFunction(DType::F32);
  const std::int64_t padded = paddedWidth(rows.width);
  const auto numRows = static_cast<std::int64_t>(sources.size()) / terms;
  const int threads = threadsFor(rows, static_cast<std::size_t>(numRows));
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (std::int64_t row = 0; row < numRows; ++row) {
    float* const own = ownRows(rows, workspace);
    const auto addRow = [&](const std::byte* data, std::int64_t number, float factor) {
      functions.read(rowAt(rows, data, number), 1, rows.width, factor, own + padded, padded);
      add(own, own + padded, own, static_cast<std::size_t>(rows.width));
    };
    std::fill_n(own, padded, 0.0F);
    for (auto slot = static_cast<std::size_t>(row * terms); slot < static_cast<std::size_t>((row + 1) * terms); ++slot)
      if (sources[slot] >= 0) addRow(rows.from, sources[slot], factors.empty() ? 1.0F : factors[slot]);
    for (const std::byte* const addend : addends) addRow(addend, row, 1.0F);
    functions.write(own, padded, 1, rows.width, nullptr, 1.0F, rowAt(rows, rows.to, row));
  }
}

std::vector<float> numbersOf(const Binding& binding, Pointers pointers) {
  if (!binding) return {};
  std::vector<double> values(static_cast<std::size_t>(binding.spec.numElements()));
  decode(binding.at(pointers), binding.spec.dtype, values);
  return {values.begin(), values.end()};
}

std::span<const std::int64_t> integersOf(const Binding& binding, Pointers pointers) {
  return {reinterpret_cast<const std::int64_t*>(binding.at(pointers)),
          static_cast<std::size_t>(binding.spec.numElements())};
}

}  // namespace fuseline::cpu
