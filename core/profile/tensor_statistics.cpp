// Statistics of tensors, a block at a time.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/tensor_statistics.h"

#include "core/profile/magnitudes_json.h"

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

/// JSON has no NaN.
Json figureJson(double value) { return std::isnan(value) ? Json() : Json(value); }

double figureIn(JsonFields& fields, const char* key) {
  Json value;
  fields.read(key, value);
  double figure = std::numeric_limits<double>::quiet_NaN();
  if (!value.is_null()) fields.read(key, figure);
  return figure;
}

TensorStatistics statisticsIn(JsonFields& fields) {
  TensorStatistics statistics;
  fields.read("elements", statistics.elements);
  fields.read("zeros", statistics.zeros);
  fields.read("nans", statistics.nans);
  fields.read("infinities", statistics.infinities);
  statistics.min = figureIn(fields, "min");
  statistics.max = figureIn(fields, "max");
  statistics.mean = figureIn(fields, "mean");
  statistics.std = figureIn(fields, "std");
  fields.read("l1", statistics.l1);
  fields.read("l2", statistics.l2);
  fields.read("largestAt", statistics.largestAt);
  fields.readObject("magnitudes", [&](JsonFields& nested) { statistics.magnitudes = magnitudesIn(nested); });
  return statistics;
}

Json statisticsJson(const TensorStatistics& statistics) {
  return {{"elements", statistics.elements},
          {"zeros", statistics.zeros},
          {"nans", statistics.nans},
          {"infinities", statistics.infinities},
          {"min", figureJson(statistics.min)},
          {"max", figureJson(statistics.max)},
          {"mean", figureJson(statistics.mean)},
          {"std", figureJson(statistics.std)},
          {"l1", statistics.l1},
          {"l2", statistics.l2},
          {"largestAt", statistics.largestAt},
          {"magnitudes", toJson(statistics.magnitudes)}};
}

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

Json toJson(const TensorSummary& summary) {
  return {{"name", summary.name},
          {"dtype", dtypeName(summary.spec.dtype)},
          {"shape", summary.spec.shape},
          {"bytes", summary.spec.bytes()},
          {"statistics", statisticsJson(summary.statistics)}};
}

TensorSummary tensorSummaryIn(JsonFields& fields) {
  TensorSummary summary;
  fields.read("name", summary.name);
  summary.spec.dtype = dtypeIn(fields);
  fields.read("shape", summary.spec.shape);
  fields.readObject("statistics", [&](JsonFields& nested) { summary.statistics = statisticsIn(nested); });
  return summary;
}

}  // namespace fuseline
