// Statistics of tensors, a block at a time.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/tensor_statistics.h"

#include "core/support/field_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// From the smallest double that is not 0 to the largest.
constexpr int kFirstExponent = -1074;
constexpr int kNumExponents = 1024 - kFirstExponent;

class StatisticsSum {
 public:
  void add(std::span<const double> values) {
    double sum = 0.0;
    std::int64_t count = 0;
    for (const double value : values) {
      const std::int64_t element = m_statistics.elements++;
      if (!std::isfinite(value)) continue;
      addFinite(value, element);
      sum += value;
      ++count;
    }
    m_statistics.nans += std::ranges::count_if(values, [](double value) { return std::isnan(value); });
    m_statistics.infinities += std::ranges::count_if(values, [](double value) { return std::isinf(value); });
    if (count > 0) merge(count, sum / static_cast<double>(count), values);
  }

  TensorStatistics result() const {
    TensorStatistics result = m_statistics;
    result.l2 = std::sqrt(m_squares);
    if (m_count > 0) result.mean = m_mean;
    if (m_count > 1) result.std = std::sqrt(m_deviations / static_cast<double>(m_count - 1));
    result.magnitudes = magnitudes();
    return result;
  }

 private:
  void addFinite(double value, std::int64_t element) {
    if (std::abs(value) > m_largest) m_statistics.largestAt = element;
    m_largest = std::max(m_largest, std::abs(value));
    m_statistics.min = std::fmin(m_statistics.min, value);
    m_statistics.max = std::fmax(m_statistics.max, value);
    m_statistics.l1 += std::abs(value);
    m_squares += value * value;
    if (value == 0.0)
      ++m_statistics.zeros;
    else
      ++m_counts[static_cast<std::size_t>(std::ilogb(value) - kFirstExponent)];
  }

  /// Two means and two sums of squared deviations become one.
  /// Source: Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance".
  void merge(std::int64_t count, double mean, std::span<const double> values) {
    for (const double value : values)
      if (std::isfinite(value)) m_deviations += (value - mean) * (value - mean);
    const auto before = static_cast<double>(m_count);
    const auto now = static_cast<double>(m_count += count);
    const double distance = mean - m_mean;
    m_deviations += distance * distance * before * static_cast<double>(count) / now;
    m_mean += distance * static_cast<double>(count) / now;
  }

  MagnitudeHistogram magnitudes() const {
    MagnitudeHistogram histogram{.zeros = m_statistics.zeros};
    const auto isUsed = [](std::int64_t count) { return count > 0; };
    const auto first = std::ranges::find_if(m_counts, isUsed);
    const auto last = std::find_if(m_counts.rbegin(), m_counts.rend(), isUsed).base();
    if (first == m_counts.end()) return histogram;
    histogram.firstExponent = kFirstExponent + static_cast<int>(first - m_counts.begin());
    histogram.counts.assign(first, last);
    return histogram;
  }

  TensorStatistics m_statistics;
  std::int64_t m_count = 0;  // of finite elements
  double m_mean = 0.0;
  double m_deviations = 0.0;  // squared, from the mean
  double m_squares = 0.0;
  double m_largest = -1.0;
  std::array<std::int64_t, kNumExponents> m_counts = {};
};

/// dtype of any tensor, including dtypes that ops do not compute with.
DType dtypeIn(JsonFields& fields) {
  std::string name;
  fields.read("dtype", name);
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::I64, DType::E4M3, DType::U8})
    if (dtypeName(dtype) == name) return dtype;
  fields.refuse("dtype", fmt::format("there is no dtype \"{}\".", name));
  return DType::F32;
}

}  // namespace

TensorStatistics statisticsOf(DType dtype, std::span<const std::byte> data) {
  constexpr std::size_t kBlock = 4096;
  const auto size = static_cast<std::size_t>(sizeBytes(dtype));
  StatisticsSum sum;
  std::vector<double> values;
  for (std::size_t begin = 0; begin < data.size(); begin += kBlock * size) {
    values.resize(std::min(kBlock, (data.size() - begin) / size));
    decode(data.data() + begin, dtype, values);
    sum.add(values);
  }
  return sum.result();
}

std::vector<TensorSummary> summariesOf(const NamedTensors& tensors) {
  std::vector<TensorSummary> summaries;
  for (const auto& [name, tensor] : tensors)
    summaries.push_back(
        {.name = name, .spec = tensor.spec, .statistics = statisticsOf(tensor.spec.dtype, tensor.data)});
  return summaries;
}

static const FieldTable<TensorStatistics>& fieldsOf(const TensorStatistics*) {
  using S = TensorStatistics;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  static const FieldTable<S> table(
      {field("elements", &S::elements, "Number of elements."),
       field("zeros", &S::zeros, "Number of elements that are 0."),
       field("nans", &S::nans, "Number of elements that are NaN."),
       field("infinities", &S::infinities, "Number of infinite elements."),
       numberOrNull("min", &S::min, kNone, "Minimum of the finite elements; null: there is none."),
       numberOrNull("max", &S::max, kNone, "Maximum of the finite elements."),
       numberOrNull("mean", &S::mean, kNone, "Mean of the finite elements."),
       numberOrNull("std", &S::std, kNone,
                    "Standard deviation of the finite elements, over n - 1; null: fewer than two."),
       field("l1", &S::l1, "L1 norm of the finite elements."), field("l2", &S::l2, "L2 norm of the finite elements."),
       field("largestAt", &S::largestAt, "Row-major index of the largest finite magnitude; -1: none."),
       field("magnitudes", &S::magnitudes)});
  return table;
}

const FieldTable<TensorSummary>& fieldsOf(const TensorSummary*) {
  using Summary = TensorSummary;
  static const FieldTable<Summary> table(
      {field("name", &Summary::name, "Name of the tensor."),
       {"dtype", schema::choice({"f32", "f16", "bf16", "i64", "e4m3"}),
        [](const Summary& summary) { return Json(dtypeName(summary.spec.dtype)); },
        [](JsonFields& fields, Summary& summary) { summary.spec.dtype = dtypeIn(fields); }},
       {"shape", schema::list(schema::integer()), [](const Summary& summary) { return Json(summary.spec.shape); },
        [](JsonFields& fields, Summary& summary) { fields.read("shape", summary.spec.shape); }},
       derived<Summary>(
           "bytes", [](const Summary& summary) { return summary.spec.bytes(); }, "Size of its data."),
       field("statistics", &Summary::statistics)});
  return table;
}

Json toJson(const TensorSummary& summary) { return fieldsOf(&summary).toJson(summary); }

TensorSummary tensorSummaryIn(JsonFields& fields) {
  TensorSummary summary;
  fieldsOf(&summary).read(fields, summary);
  return summary;
}

}  // namespace fuseline
