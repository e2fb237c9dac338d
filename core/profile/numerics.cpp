// Distances between tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/numerics.h"

#include "core/profile/magnitudes_json.h"
#include "core/support/json_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace fuseline {

namespace {

int mantissaBits(DType dtype) {
  if (dtype == DType::BF16) return 7;
  return dtype == DType::F16 ? 10 : 23;
}

/// The distance between neighbors of a dtype at this value.
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
  std::int64_t count = 0;

  void add(double actual, double expected) {
    ++count;
    squaredError += (actual - expected) * (actual - expected);
    squaredExpected += expected * expected;
    squaredActual += actual * actual;
    products += actual * expected;
  }
  double rmsOf(double squares) const { return count == 0 ? 0.0 : std::sqrt(squares / static_cast<double>(count)); }
  double rmsRelative() const {
    if (squaredError == 0.0) return 0.0;
    return squaredExpected == 0.0 ? rmsOf(squaredError) : std::sqrt(squaredError / squaredExpected);
  }
  double cosine() const {
    const double norms = std::sqrt(squaredExpected) * std::sqrt(squaredActual);
    return norms == 0.0 ? 1.0 : products / norms;
  }
};

/// See ErrorNumerics::toleranceShare.
constexpr double kLargestOverRms = 8.0;

/// Share of the allowed difference; integers allow none.
double shareOf(double difference, double allowed) {
  if (difference == 0.0) return 0.0;
  return allowed > 0.0 ? difference / allowed : std::numeric_limits<double>::infinity();
}

double toleranceShareOf(const std::vector<double>& actual, const std::vector<double>& expected, const Sums& sums,
                        const Tolerance& tolerance) {
  const double scale = sums.rmsOf(sums.squaredExpected);
  double share = shareOf(sums.rmsOf(sums.squaredError), tolerance.relative * scale + tolerance.absolute);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!std::isfinite(actual[i]) || !std::isfinite(expected[i])) continue;
    const double allowed = kLargestOverRms * tolerance.relative * (std::abs(expected[i]) + scale) + tolerance.absolute;
    share = std::max(share, shareOf(std::abs(actual[i] - expected[i]), allowed));
  }
  return share;
}

/// JSON has neither infinity nor NaN.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json toJson(const QuantizationLosses& losses) {
  return {{"amax", number(losses.amax)},
          {"smallest", number(losses.smallest)},
          {"dynamicRange", number(losses.dynamicRange())},
          {"scaleInv", {number(losses.scaleInvMin), number(losses.scaleInvMax)}},
          {"underflowShare", losses.underflowShare},
          {"saturationShare", losses.saturationShare},
          {"meanSquaredError", number(losses.meanSquaredError)},
          {"signalToNoise", number(losses.signalToNoise)}};
}

Json toJson(const Requantized& other) {
  Json json = toJson(other.losses);
  json.update({{"recipe", other.recipe},
               {"format", other.format},
               {"element", formatName(other.element)},
               {"elements", other.elements}});
  return json;
}

Json toJson(const CopyNumerics& copy);
Json toJson(const ErrorNumerics& error);
Json toJson(const FrozenScale& frozen);

template <class Item>
Json listOf(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(toJson(item));
  return list;
}

Json toJson(const CopyNumerics& copy) {
  Json json = fuseline::toJson(
      CopyLosses{.name = copy.name, .owner = copy.owner, .format = copy.format, .losses = copy.losses});
  json.update({{"magnitudes", fuseline::toJson(copy.magnitudes)}, {"requantized", listOf(copy.requantized)}});
  return json;
}

Json toJson(const ErrorNumerics& error) {
  return {{"name", error.name},
          {"owner", error.owner},
          {"maxAbsolute", number(error.maxAbsolute)},
          {"rmsRelative", number(error.rmsRelative)},
          {"cosine", number(error.cosine)},
          {"ulpHistogram", error.ulpHistogram},
          {"isFinite", error.isFinite},
          {"tolerance", error.tolerance},
          {"toleranceShare", number(error.toleranceShare)},
          {"isWithin", error.isWithin()}};
}

Json toJson(const FrozenScale& frozen) {
  return {{"name", frozen.name}, {"owner", frozen.owner}, {"scale", frozen.scale}, {"steps", frozen.steps}};
}

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double numberIn(JsonFields& fields, const char* key) {
  Json value;
  fields.read(key, value);
  if (value.is_null()) return kInfinite;
  double number = 0.0;
  fields.read(key, number);
  return number;
}

/// The smallest and the largest; those that overflowed are null.
void readScales(JsonFields& fields, QuantizationLosses& losses) {
  Json pair;
  fields.read("scaleInv", pair);
  const auto isScale = [](const Json& scale) { return scale.is_number() || scale.is_null(); };
  if (!pair.is_array() || pair.size() != 2 || !std::ranges::all_of(pair, isScale))
    return fields.refuse("scaleInv", "expected two numbers.");
  losses.scaleInvMin = pair[0].is_null() ? kInfinite : pair[0].get<double>();
  losses.scaleInvMax = pair[1].is_null() ? kInfinite : pair[1].get<double>();
}

QuantizationLosses lossesIn(JsonFields& fields) {
  QuantizationLosses losses{.amax = numberIn(fields, "amax"), .smallest = numberIn(fields, "smallest")};
  readScales(fields, losses);
  fields.read("underflowShare", losses.underflowShare);
  fields.read("saturationShare", losses.saturationShare);
  losses.meanSquaredError = numberIn(fields, "meanSquaredError");
  losses.signalToNoise = numberIn(fields, "signalToNoise");
  return losses;
}

Requantized requantizedIn(JsonFields& fields) {
  Requantized other{.losses = lossesIn(fields)};
  fields.read("recipe", other.recipe);
  fields.read("format", other.format);
  fields.read("elements", other.elements);
  std::string element;
  fields.read("element", element);
  if (const auto format = parseElementFormat(element))
    other.element = *format;
  else
    fields.refuse("element", "there is no such format.");
  return other;
}

CopyNumerics copyIn(JsonFields& fields) {
  CopyLosses lost = copyLossesIn(fields);
  CopyNumerics copy{.name = std::move(lost.name),
                    .owner = std::move(lost.owner),
                    .format = std::move(lost.format),
                    .losses = lost.losses};
  fields.readObject("magnitudes", [&](JsonFields& nested) { copy.magnitudes = magnitudesIn(nested); });
  fields.readObjects("requantized", [&](JsonFields& nested) { copy.requantized.push_back(requantizedIn(nested)); });
  return copy;
}

/// Null: infinitely much.
double shareIn(JsonFields& fields) {
  Json value = 0.0;
  fields.read("toleranceShare", value, Presence::Optional);
  if (value.is_null()) return kInfinite;
  double share = 0.0;
  fields.read("toleranceShare", share, Presence::Optional);
  return share;
}

ErrorNumerics errorIn(JsonFields& fields) {
  ErrorNumerics error{.maxAbsolute = numberIn(fields, "maxAbsolute"),
                      .rmsRelative = numberIn(fields, "rmsRelative"),
                      .cosine = numberIn(fields, "cosine")};
  fields.read("name", error.name);
  fields.read("owner", error.owner);
  fields.read("isFinite", error.isFinite);
  std::vector<std::int64_t> counts;
  fields.read("ulpHistogram", counts);
  if (counts.size() == error.ulpHistogram.size())
    std::ranges::copy(counts, error.ulpHistogram.begin());
  else
    fields.refuse("ulpHistogram", "another number of counts is expected.");
  fields.read("tolerance", error.tolerance, Presence::Optional);  // older programs write neither
  error.toleranceShare = shareIn(fields);
  return error;
}

FrozenScale frozenIn(JsonFields& fields) {
  FrozenScale frozen;
  double scale = 0.0;
  fields.read("name", frozen.name);
  fields.read("owner", frozen.owner);
  fields.read("scale", scale);
  fields.read("steps", frozen.steps);
  frozen.scale = static_cast<float>(scale);
  return frozen;
}

NonFiniteOrigin originIn(JsonFields& fields) {
  NonFiniteOrigin origin;
  fields.read("step", origin.step);
  fields.read("tensor", origin.tensor);
  fields.read("phase", origin.phase);
  return origin;
}

}  // namespace

MagnitudeHistogram magnitudesOf(const std::vector<double>& values) {
  std::map<int, std::int64_t> counts;
  MagnitudeHistogram magnitudes;
  for (const double value : values) {
    if (value == 0.0) ++magnitudes.zeros;
    if (value != 0.0 && std::isfinite(value)) ++counts[std::ilogb(value)];
  }
  if (counts.empty()) return magnitudes;
  magnitudes.firstExponent = counts.begin()->first;
  magnitudes.counts.resize(static_cast<std::size_t>(counts.rbegin()->first - magnitudes.firstExponent + 1));
  for (const auto& [exponent, count] : counts)
    magnitudes.counts[static_cast<std::size_t>(exponent - magnitudes.firstExponent)] = count;
  return magnitudes;
}

double ErrorNumerics::ulpsOf(double share) const {
  const auto total = std::accumulate(ulpHistogram.begin(), ulpHistogram.end(), std::int64_t{0});
  std::int64_t within = 0;
  for (int bucket = 0; bucket + 1 < kUlpBuckets; ++bucket) {
    within += ulpHistogram[static_cast<std::size_t>(bucket)];
    if (static_cast<double>(within) >= share * static_cast<double>(total)) return std::ldexp(0.5, bucket);
  }
  return kInfinite;
}

ErrorNumerics errorOf(std::string name, const std::vector<double>& actual, const std::vector<double>& expected,
                      DType dtype) {
  return errorOf(std::move(name), actual, expected, dtype, toleranceOf(dtype));
}

ErrorNumerics errorOf(std::string name, const std::vector<double>& actual, const std::vector<double>& expected,
                      DType dtype, const Tolerance& tolerance) {
  ErrorNumerics error{.name = std::move(name), .owner = {}, .tolerance = tolerance.relative};
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
  if (sums.count == 0 && !actual.empty()) error.isFinite = false;  // two tensors of NaN say nothing
  error.rmsRelative = sums.rmsRelative();
  error.cosine = sums.cosine();
  error.toleranceShare = toleranceShareOf(actual, expected, sums, tolerance);
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

Json toJson(const CopyLosses& copy) {
  Json json = toJson(copy.losses);
  json.update({{"name", copy.name}, {"owner", copy.owner}, {"format", copy.format}});
  return json;
}

CopyLosses copyLossesIn(JsonFields& fields) {
  CopyLosses copy{.losses = lossesIn(fields)};
  fields.read("name", copy.name);
  fields.read("owner", copy.owner);
  fields.read("format", copy.format);
  return copy;
}

Json toJson(const NumericsVerdict& verdict) {
  return {{"isWithin", verdict.isWithin}, {"worst", verdict.worst}, {"toleranceShare", number(verdict.toleranceShare)}};
}

NumericsVerdict verdictIn(JsonFields& fields) {
  NumericsVerdict verdict;
  fields.read("isWithin", verdict.isWithin);
  fields.read("worst", verdict.worst);
  verdict.toleranceShare = shareIn(fields);
  return verdict;
}

NumericsVerdict verdictOf(const std::vector<ErrorNumerics>& errors) {
  const auto rank = [](const ErrorNumerics& error) { return std::pair(!error.isWithin(), error.toleranceShare); };
  const auto worst = std::ranges::max_element(errors, {}, rank);
  if (worst == errors.end()) return {};
  return {.isWithin = worst->isWithin(), .worst = worst->name, .toleranceShare = worst->toleranceShare};
}

Json toJson(const NumericsReport& report) {
  Json json = {{"recipe", report.recipe},
               {"copies", listOf(report.copies)},
               {"frozenScales", listOf(report.frozenScales)},
               {"errors", listOf(report.errors)},
               {"fusionErrors", listOf(report.fusionErrors)},
               {"firstNonFinite", nullptr}};
  if (const auto& origin = report.firstNonFinite)
    json["firstNonFinite"] = {{"step", origin->step}, {"tensor", origin->tensor}, {"phase", origin->phase}};
  return json;
}

Result<NumericsReport> numericsFromJson(const Json& json) {
  NumericsReport report;
  JsonFields fields(json, "");
  fields.read("recipe", report.recipe);
  fields.readObjects("copies", [&](JsonFields& nested) { report.copies.push_back(copyIn(nested)); });
  fields.readObjects("frozenScales", [&](JsonFields& nested) { report.frozenScales.push_back(frozenIn(nested)); });
  fields.readObjects("errors", [&](JsonFields& nested) { report.errors.push_back(errorIn(nested)); });
  fields.readObjects("fusionErrors", [&](JsonFields& nested) { report.fusionErrors.push_back(errorIn(nested)); });
  Json origin;
  fields.read("firstNonFinite", origin);
  if (!origin.is_null())
    fields.readObject("firstNonFinite", [&](JsonFields& nested) { report.firstNonFinite = originIn(nested); });
  if (fields.error()) return *fields.error();
  return report;
}

}  // namespace fuseline
