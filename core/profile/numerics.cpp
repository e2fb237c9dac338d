// Distances between tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/numerics.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline {

namespace {

int mantissaBits(DType dtype) {
  if (dtype == DType::BF16) return 7;
  return dtype == DType::F16 ? 10 : 23;
}

/// The distance between neighbours of a dtype at this value.
double unitInLastPlace(double value, DType dtype) {
  const int smallest = dtype == DType::F16 ? -14 : -126;
  const int exponent = value == 0.0 ? smallest : std::max(std::ilogb(value), smallest);
  return std::ldexp(1.0, exponent - mantissaBits(dtype));
}

std::size_t bucketOf(double ulps) {
  if (ulps <= 0.5) return 0;
  const int bucket = 1 + std::max(0, static_cast<int>(std::ceil(std::log2(ulps))));
  return static_cast<std::size_t>(std::min(bucket, ErrorNumerics::kUlpBuckets - 1));
}

bool isSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// The sums over all elements that are numbers on both sides.
struct Sums {
  double squaredError = 0.0;
  double squaredExpected = 0.0;
  double squaredActual = 0.0;
  double products = 0.0;

  void add(double actual, double expected) {
    squaredError += (actual - expected) * (actual - expected);
    squaredExpected += expected * expected;
    squaredActual += actual * actual;
    products += actual * expected;
  }
  double rmsRelative() const {
    if (squaredError == 0.0) return 0.0;
    return squaredExpected == 0.0 ? std::sqrt(squaredError) : std::sqrt(squaredError / squaredExpected);
  }
  double cosine() const {
    const double norms = std::sqrt(squaredExpected) * std::sqrt(squaredActual);
    return norms == 0.0 ? 1.0 : products / norms;
  }
};

/// JSON has neither infinity nor NaN.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json toJson(const CopyNumerics& copy) {
  const QuantizationLosses& losses = copy.losses;
  return {{"name", copy.name},
          {"owner", copy.owner},
          {"format", copy.format},
          {"amax", number(losses.amax)},
          {"smallest", number(losses.smallest)},
          {"dynamicRange", number(losses.dynamicRange())},
          {"scaleInv", {number(losses.scaleInvMin), number(losses.scaleInvMax)}},
          {"underflowShare", losses.underflowShare},
          {"saturationShare", losses.saturationShare},
          {"meanSquaredError", number(losses.meanSquaredError)},
          {"signalToNoise", number(losses.signalToNoise)}};
}

Json toJson(const ErrorNumerics& error) {
  return {{"name", error.name},
          {"owner", error.owner},
          {"maxAbsolute", number(error.maxAbsolute)},
          {"rmsRelative", number(error.rmsRelative)},
          {"cosine", number(error.cosine)},
          {"ulpHistogram", error.ulpHistogram},
          {"isFinite", error.isFinite}};
}

template <class Item>
Json listOf(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(toJson(item));
  return list;
}

}  // namespace

ErrorNumerics errorOf(std::string name, const std::vector<double>& actual, const std::vector<double>& expected,
                      DType dtype) {
  ErrorNumerics error{.name = std::move(name), .owner = {}};
  Sums sums;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!std::isfinite(actual[i]) || !std::isfinite(expected[i])) {
      error.isFinite &= isSame(actual[i], expected[i]);
      continue;
    }
    sums.add(actual[i], expected[i]);
    const double distance = std::abs(actual[i] - expected[i]);
    error.maxAbsolute = std::max(error.maxAbsolute, distance);
    ++error.ulpHistogram[bucketOf(distance / unitInLastPlace(expected[i], dtype))];
  }
  error.rmsRelative = sums.rmsRelative();
  error.cosine = sums.cosine();
  return error;
}

const ErrorNumerics* NumericsReport::worst() const {
  const auto found = std::ranges::max_element(errors, {}, &ErrorNumerics::rmsRelative);
  return found == errors.end() ? nullptr : &*found;
}

double NumericsReport::worstUnderflow() const {
  double worst = 0.0;
  for (const CopyNumerics& copy : copies) worst = std::max(worst, copy.losses.underflowShare);
  return worst;
}

Json toJson(const NumericsReport& report) {
  Json json = {{"recipe", report.recipe},
               {"copies", listOf(report.copies)},
               {"errors", listOf(report.errors)},
               {"fusionErrors", listOf(report.fusionErrors)},
               {"firstNonFinite", nullptr}};
  if (const auto& origin = report.firstNonFinite)
    json["firstNonFinite"] = {{"step", origin->step}, {"tensor", origin->tensor}, {"phase", origin->phase}};
  return json;
}

}  // namespace fuseline
