// Finds round numbers within a range.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/axis_range.h"

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

/// The largest distance of neighbors over the smallest.
double unevenness(const std::vector<double>& values) {
  double least = values[1] - values[0];
  double most = least;
  for (std::size_t i = 2; i < values.size(); ++i) {
    least = std::min(least, values[i] - values[i - 1]);
    most = std::max(most, values[i] - values[i - 1]);
  }
  return most / least;
}

/// 1, 2, 5, 10, 20, ...: the first that is no smaller.
double roundStep(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least) return factor * power;
  return 10.0 * power;
}

}  // namespace

double LogRange::shareOf(double value) const { return std::log(value / low) / std::log(high / low); }

std::vector<double> LogRange::decades(int most) const {
  const int first = static_cast<int>(std::ceil(std::log10(low)));
  const int last = static_cast<int>(std::floor(std::log10(high)));
  const int step = std::max(1, (last - first + std::max(most, 1)) / std::max(most, 1));
  std::vector<double> powers;
  for (int exponent = first; exponent <= last; exponent += step) powers.push_back(std::pow(10.0, exponent));
  return powers;
}

std::vector<double> LogRange::ticks(int most) const {
  std::vector<double> values;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::floor(std::log10(high)));
  for (int exponent = first; exponent <= last; ++exponent)
    for (const double factor : {1.0, 2.0, 5.0})
      if (const double value = factor * std::pow(10.0, exponent); value >= low && value <= high)
        values.push_back(value);
  return static_cast<int>(values.size()) <= most ? values : decades(most);
}

std::vector<double> LinearRange::ticks(int most) const {
  const double step = roundStep((high - low) / std::max(most, 1));
  std::vector<double> values;
  for (double index = std::ceil(low / step); index * step <= high; ++index) values.push_back(index * step);
  return values;
}

double AxisRange::shareOf(double value) const {
  return isLogarithmic ? LogRange{low, high}.shareOf(value) : LinearRange{low, high}.shareOf(value);
}

std::vector<double> AxisRange::ticks(int most) const {
  return isLogarithmic ? LogRange{low, high}.ticks(most) : LinearRange{low, high}.ticks(most);
}

bool isGeometric(const std::vector<double>& values) {
  if (values.size() < 3 || values.front() <= 0.0) return false;
  std::vector<double> logarithms;
  for (const double value : values) logarithms.push_back(std::log(value));
  return unevenness(logarithms) < unevenness(values);
}

}  // namespace fuseline::ui
