// TensorStatistics: statistics over all elements of a tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/numerics.h"
#include "core/support/json_fields.h"
#include "core/tensor/tensor.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// The figures are those of TransformerEngine's LogTensorStats, over the finite elements. If there are too few of
/// these, a figure is NaN.
struct TensorStatistics {
  std::int64_t elements = 0;
  std::int64_t zeros = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  double mean = std::numeric_limits<double>::quiet_NaN();
  double std = std::numeric_limits<double>::quiet_NaN();  // over n - 1, as torch.std
  double l1 = 0.0;
  double l2 = 0.0;
  std::int64_t largestAt = -1;  // index of the first element with the largest finite magnitude; -1: there is none
  MagnitudeHistogram magnitudes;

  std::int64_t finite() const { return elements - nans - infinities; }
};

/// data: elements of dtype, row-major or not. One pass, in double.
TensorStatistics statisticsOf(DType dtype, std::span<const std::byte> data);

/// A tensor without its data.
struct TensorSummary {
  std::string name;
  TensorSpec spec;
  TensorStatistics statistics;
};
std::vector<TensorSummary> summariesOf(const NamedTensors& tensors);
const FieldTable<TensorSummary>& fieldsOf(const TensorSummary*);
Json toJson(const TensorSummary& summary);
/// The inverse.
TensorSummary tensorSummaryIn(JsonFields& fields);

}  // namespace fuseline
