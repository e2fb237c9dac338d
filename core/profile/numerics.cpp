// Distances between tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/numerics.h"

#include "core/support/field_bounds.h"

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

/// The size of the terms of which an element is the sum: the largest rms among those of the whole matrix, of its row
/// and of its column. Rows and columns of a few elements do not count, as their rms would be the element itself.
class LocalScales {
 public:
  /// cols 0: no matrix
  LocalScales(const std::vector<double>& values, std::int64_t cols, double whole)
      : m_whole(whole),
        m_columns(static_cast<std::size_t>(cols)),
        m_rows(m_columns.empty() ? 0 : values.size() / m_columns.size()) {
    for (std::size_t row = 0; row < m_rows.size(); ++row)
      for (std::size_t col = 0; col < m_columns.size(); ++col) {
        const double value = values[row * m_columns.size() + col];
        const double square = std::isfinite(value) ? value * value : 0.0;
        m_rows[row] += square / static_cast<double>(m_columns.size());
        m_columns[col] += square / static_cast<double>(m_rows.size());
      }
  }

  double at(std::size_t i) const {
    double largest = m_whole * m_whole;
    if (m_columns.size() >= kFewest) largest = std::max(largest, m_rows[i / m_columns.size()]);
    if (m_rows.size() >= kFewest) largest = std::max(largest, m_columns[i % m_columns.size()]);
    return std::sqrt(largest);
  }

 private:
  static constexpr std::size_t kFewest = 16;

  double m_whole;
  std::vector<double> m_columns;  // mean squares
  std::vector<double> m_rows;
};

double toleranceShareOf(const std::vector<double>& actual, const std::vector<double>& expected, std::int64_t cols,
                        const Sums& sums, const Tolerance& tolerance) {
  const double scale = sums.rmsOf(sums.squaredExpected);
  const LocalScales scales(expected, cols, scale);
  double share = shareOf(sums.rmsOf(sums.squaredError), tolerance.relative * scale + tolerance.absolute);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!std::isfinite(actual[i]) || !std::isfinite(expected[i])) continue;
    const double allowed =
        kLargestOverRms * tolerance.relative * (std::abs(expected[i]) + scales.at(i)) + tolerance.absolute;
    share = std::max(share, shareOf(std::abs(actual[i] - expected[i]), allowed));
  }
  return share;
}

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// JSON has neither infinity nor NaN.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

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

const FieldTable<QuantizationLosses>& lossFields() {
  using Losses = QuantizationLosses;
  static const FieldTable<Losses> table(
      {numberOrNull("amax", &Losses::amax, kInfinite, "Largest magnitude of the tensor."),
       numberOrNull("smallest", &Losses::smallest, kInfinite, "Smallest nonzero magnitude."),
       {"dynamicRange", schema::orNull(schema::number("log2 of the ratio of the largest and smallest magnitude.")),
        [](const Losses& losses) { return number(losses.dynamicRange()); }},
       {"scaleInv",
        schema::list(schema::orNull(schema::number("Dequantization factor: smallest and largest of all blocks."))),
        [](const Losses& losses) {
          return Json::array({number(losses.scaleInvMin), number(losses.scaleInvMax)});
        },
        readScales},
       between(field("underflowShare", &Losses::underflowShare, "Share of nonzero elements that became 0."), 0.0, 1.0),
       between(field("saturationShare", &Losses::saturationShare,
                     "Share of all elements beyond the maximum of the format."),
               0.0, 1.0),
       numberOrNull("meanSquaredError", &Losses::meanSquaredError, kInfinite,
                    "Mean squared error, relative to the unquantized tensor."),
       numberOrNull("signalToNoise", &Losses::signalToNoise, kInfinite,
                    "Signal-to-noise ratio in dB; null: no noise.")});
  return table;
}

/// A quantized copy and its losses.
template <class Copy>
FieldTable<Copy> copyFields() {
  return FieldTable<Copy>(inlined(&Copy::losses, lossFields()))
      .with({field("name", &Copy::name, "Name of the quantized tensor."),
             field("owner", &Copy::owner, "Op of the document that consumes it."),
             field("format", &Copy::format, "Format of its elements and scales.")});
}

Field<Requantized> elementField() {
  return {"element", schema::text("e4m3, e5m2 or e2m1."),
          [](const Requantized& other) { return Json(formatName(other.element)); },
          [](JsonFields& fields, Requantized& other) {
            std::string element;
            fields.read("element", element);
            if (const auto format = parseElementFormat(element))
              other.element = *format;
            else
              fields.refuse("element", "there is no such format.");
          }};
}

template <class Result>
Field<Result> toleranceShareField(std::string_view help) {
  return numberOrNull("toleranceShare", &Result::toleranceShare, kInfinite, help, Presence::Optional);
}

}  // namespace

const FieldTable<MagnitudeHistogram>& fieldsOf(const MagnitudeHistogram*) {
  static const FieldTable<MagnitudeHistogram> table(
      {field("firstExponent", &MagnitudeHistogram::firstExponent,
             "Exponent of the first count: 2^e <= |x| < 2^(e + 1)."),
       amount(field("counts", &MagnitudeHistogram::counts, "Elements by binary order of magnitude.")),
       amount(field("zeros", &MagnitudeHistogram::zeros, "Elements that are 0."))});
  return table;
}

static const FieldTable<Requantized>& fieldsOf(const Requantized*) {
  static const auto table =
      FieldTable<Requantized>(inlined(&Requantized::losses, lossFields()))
          .with({field("recipe", &Requantized::recipe, "Name of the recipe."),
                 field("format", &Requantized::format, "Format of its elements and scales."), elementField(),
                 amount(field("elements", &Requantized::elements,
                              "Elements, from the first rows, that were quantized."))});
  return table;
}

static const FieldTable<CopyNumerics>& fieldsOf(const CopyNumerics*) {
  static const auto table = copyFields<CopyNumerics>().with(
      {field("magnitudes", &CopyNumerics::magnitudes),
       field("alternativeRecipes", &CopyNumerics::requantized).formerly("requantized")});
  return table;
}

const FieldTable<CopyLosses>& fieldsOf(const CopyLosses*) {
  static const FieldTable<CopyLosses> table = copyFields<CopyLosses>();
  return table;
}

static const FieldTable<ErrorNumerics>& fieldsOf(const ErrorNumerics*) {
  using Errors = ErrorNumerics;
  static const FieldTable<Errors> table(
      {field("name", &Errors::name, "Name of the tensor."),
       field("owner", &Errors::owner, "Op of the document that produces it; empty: none."),
       numberOrNull("maxAbsolute", &Errors::maxAbsolute, kInfinite, "The largest difference."),
       numberOrNull("rmsRelative", &Errors::rmsRelative, kInfinite,
                    "RMS of the differences / RMS of the expected values."),
       numberOrNull("cosine", &Errors::cosine, kInfinite, "Cosine similarity with the expected values."),
       amount(field("ulpHistogram", &Errors::ulpHistogram,
                    "Number of elements by distance: at most 0.5, 1, 2, 4 ... 512 ulp, and more.")),
       field("isFinite", &Errors::isFinite, "No element is NaN, and infinities are at the same places."),
       newField("tolerance", &Errors::tolerance, "Tolerance relative to the values."),
       toleranceShareField<Errors>("Largest difference / its tolerance; above 1 fails."),
       derived<Errors>("isWithin", &Errors::isWithin, "Whether the share of the tolerance is finite and at most 1.")});
  return table;
}

static const FieldTable<FrozenScale>& fieldsOf(const FrozenScale*) {
  static const FieldTable<FrozenScale> table(
      {field("name", &FrozenScale::name, "Name of the tensor."),
       field("owner", &FrozenScale::owner, "Op of the document that consumes it."),
       field("scale", &FrozenScale::scale, "Value of the frozen scale."),
       amount(field("steps", &FrozenScale::steps,
                    "Number of training steps until the infinite amax leaves the history."))});
  return table;
}

static const FieldTable<NonFiniteOrigin>& fieldsOf(const NonFiniteOrigin*) {
  static const FieldTable<NonFiniteOrigin> table(
      {field("step", &NonFiniteOrigin::step, "Step that produced it."),
       field("tensor", &NonFiniteOrigin::tensor, "Tensor with the first NaN or infinity."),
       field("phase", &NonFiniteOrigin::phase, "forward, backward or input.")});
  return table;
}

const FieldTable<NumericsVerdict>& fieldsOf(const NumericsVerdict*) {
  static const FieldTable<NumericsVerdict> table(
      {field("isWithin", &NumericsVerdict::isWithin, "All results are within their tolerances."),
       field("worst", &NumericsVerdict::worst, "Result closest to its tolerance; empty: none."),
       toleranceShareField<NumericsVerdict>("Its difference / its tolerance; above 1 fails.")});
  return table;
}

const FieldTable<NumericsReport>& fieldsOf(const NumericsReport*) {
  static const FieldTable<NumericsReport> table(
      {field("recipe", &NumericsReport::recipe, "Name of the recipe."),
       field("quantizedTensors", &NumericsReport::copies).formerly("copies"),
       field("frozenScales", &NumericsReport::frozenScales), field("errors", &NumericsReport::errors),
       field("fusionErrors", &NumericsReport::fusionErrors), field("firstNonFinite", &NumericsReport::firstNonFinite)});
  return table;
}

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
                      DType dtype, const Tolerance& tolerance, std::int64_t cols) {
  ErrorNumerics error{.name = std::move(name), .owner = {}, .tolerance = tolerance.relative};
  Sums sums;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!std::isfinite(actual[i]) || !std::isfinite(expected[i])) {
      error.isFinite &= actual[i] == expected[i];
      continue;
    }
    sums.add(actual[i], expected[i]);
    const double distance = std::abs(actual[i] - expected[i]);
    error.maxAbsolute = std::max(error.maxAbsolute, distance);
    ++error.ulpHistogram[bucketOf(distance / unitInLastPlace(expected[i], dtype))];
  }
  if (sums.count == 0 && !actual.empty()) error.isFinite = false;  // nothing is left to compare
  error.rmsRelative = sums.rmsRelative();
  error.cosine = sums.cosine();
  error.toleranceShare = toleranceShareOf(actual, expected, cols, sums, tolerance);
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

NumericsVerdict verdictOf(const std::vector<ErrorNumerics>& errors) {
  const auto rank = [](const ErrorNumerics& error) { return std::pair(!error.isWithin(), error.toleranceShare); };
  const auto worst = std::ranges::max_element(errors, {}, rank);
  if (worst == errors.end()) return {};
  return {.isWithin = worst->isWithin(),
          .worst = worst->name,
          .toleranceShare = worst->isFinite ? worst->toleranceShare : kInfinite};
}

Json toJson(const NumericsReport& report) { return fieldsOf(&report).toJson(report); }

Result<NumericsReport> numericsFromJson(const Json& json) {
  return fieldsOf(static_cast<const NumericsReport*>(nullptr)).from(json);
}

}  // namespace fuseline
