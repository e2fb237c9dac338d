// The base of the angles is what the table says, rounded to few digits, and then every element is compared.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/rotary_fit.h"

#include "core/ops/catalog.h"
#include "core/ops/rotary_form.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string>

#include <fmt/format.h>

namespace fuseline {

namespace {

double rounded(double value, int digits) {
  const std::string text = fmt::format("{:.{}e}", value, digits - 1);
  double result = value;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

Attributes asAttributes(const Json& given) {
  Attributes attributes = defaultAttributes(*builtinOperations().find("RotaryPositionEmbedding"));
  for (const auto& [name, value] : given.items()) {
    if (value.is_boolean())
      attributes.set(name, value.get<bool>());
    else if (value.is_number_integer() && name != "factor")
      attributes.set(name, value.get<std::int64_t>());
    else if (value.is_number())
      attributes.set(name, value.get<double>());
    else
      attributes.set(name, value.get<std::string>());
  }
  return attributes;
}

bool matches(const Json& given, const AngleTable& table) {
  const double base = given["rotary_base"].get<double>();
  if (!std::isfinite(base) || base <= 1.0) return false;
  const Attributes attributes = asAttributes(given);
  const std::vector<double> frequencies = rotaryFrequencies(attributes, table.rows);
  if (static_cast<std::int64_t>(frequencies.size()) != table.pairs) return false;
  const auto offset = given.value("offset", std::int64_t{0});
  const double magnitude = rotaryAttentionFactor(attributes);
  for (std::int64_t row = 0; row < table.rows; ++row)
    for (std::int64_t m = 0; m < table.pairs; ++m) {
      const double turn = static_cast<double>(row + offset) * frequencies[static_cast<std::size_t>(m)];
      const double tolerance = table.tolerance + 1.01 * table.rounding + 3e-7 * turn;  // angles are f32
      const auto at = static_cast<std::size_t>(row * table.pairs + m);
      if (!(std::abs(table.cosines[at] - magnitude * std::cos(turn)) <= tolerance)) return false;
      if (!(std::abs(table.sines[at] - magnitude * std::sin(turn)) <= tolerance)) return false;
    }
  return true;
}

void leaveOutScaling(Json& attributes) {
  for (const char* const name : {"rope_type", "factor", "original_max_position_embeddings", "truncate",
                                 "attention_factor", "short_factor", "long_factor"})
    attributes.erase(name);
}

/// Factor of all sines and cosines.
double magnitudeOf(const AngleTable& table) {
  return rounded(std::hypot(table.cosines.front(), table.sines.front()), 7);
}

double angleAt(const AngleTable& table, std::int64_t row, std::int64_t m) {
  const auto at = static_cast<std::size_t>(row * table.pairs + m);
  return std::atan2(table.sines[at], table.cosines[at]);
}

/// Position of the first row. False: it is none.
bool setOffset(Json& attributes, double position) {
  const double offset = std::round(position);
  if (!(offset >= 0.0 && offset < 1e6)) return false;
  attributes.erase("offset");
  if (offset > 0.0) attributes["offset"] = static_cast<std::int64_t>(offset);
  return true;
}

/// Radians by row, from the first two rows and corrected by all others.
double frequencyOf(const AngleTable& table, std::int64_t m) {
  double frequency = 0.0;
  for (std::int64_t row = 1; row < table.rows; ++row) {
    const auto rows = static_cast<double>(row);
    const double turn = angleAt(table, row, m) - angleAt(table, 0, m);
    frequency += std::remainder(turn - frequency * rows, 2.0 * std::numbers::pi) / rows;
  }
  return frequency;
}

/// Small angles of a quantized table are 0, and say nothing of the base.
bool fitCommon(Json& attributes, const AngleTable& table) {
  for (const double base : {1e4, 5e5, 1e6}) {
    attributes["rotary_base"] = base;
    if (matches(attributes, table)) return true;
  }
  return false;
}

/// The angles of one position say the base and the position together: only for a usual base they are known.
bool fitRow(Json& attributes, const AngleTable& table) {
  for (const double base : {1e4, 5e5, 1e6}) {
    attributes["rotary_base"] = base;
    const double slowest = std::pow(base, 1.0 / static_cast<double>(table.pairs) - 1.0);
    if (setOffset(attributes, angleAt(table, 0, table.pairs - 1) / slowest) && matches(attributes, table)) return true;
  }
  return false;
}

/// The numbers that models of the Llama 3 family are published with.
bool fitLlama3(Json& attributes, const AngleTable& table, double second) {
  leaveOutScaling(attributes);
  if (table.pairs < 2) return false;
  const double base = std::pow(second, -static_cast<double>(table.pairs));
  attributes["rope_type"] = "llama3";
  attributes["original_max_position_embeddings"] = 8192;
  for (const double factor : {8.0, 32.0})
    for (int digits = 1; digits <= 6; ++digits) {
      attributes["factor"] = factor;
      attributes["rotary_base"] = rounded(base, digits);
      if (matches(attributes, table)) return true;
    }
  return false;
}

/// The numbers that GPT-OSS, DeepSeek-V3 and Qwen are published with.
bool fitYarn(Json& attributes, const AngleTable& table) {
  struct Published {
    double base, factor;
    std::int64_t length;
    bool isTruncated;
  };
  for (const Published each : {Published{150000.0, 32.0, 4096, false}, Published{10000.0, 40.0, 4096, true},
                               Published{1e6, 4.0, 32768, true}, Published{1e6, 4.0, 40960, true}}) {
    leaveOutScaling(attributes);
    attributes.update({{"rope_type", "yarn"},
                       {"factor", each.factor},
                       {"rotary_base", each.base},
                       {"original_max_position_embeddings", each.length}});
    if (!each.isTruncated) attributes["truncate"] = false;
    const double magnitude = magnitudeOf(table), usual = 0.1 * std::log(each.factor) + 1.0;
    if (std::abs(magnitude - usual) > table.tolerance) attributes["attention_factor"] = magnitude;
    if (matches(attributes, table)) return true;
  }
  return false;
}

/// Any other frequencies, by what divides those of the usual base.
bool fitByPair(Json& attributes, const AngleTable& table) {
  constexpr double kBase = 10000.0;
  std::string factors;
  for (std::int64_t m = 0; m < table.pairs; ++m) {
    const double usual = std::pow(kBase, -static_cast<double>(m) / static_cast<double>(table.pairs));
    const double frequency = frequencyOf(table, m);
    if (!(frequency > 0.0)) return false;
    factors += fmt::format("{}{:.9g}", m == 0 ? "" : ", ", usual / frequency);
  }
  leaveOutScaling(attributes);
  attributes.update({{"rope_type", "longrope"},
                     {"factor", 1.0},
                     {"rotary_base", kBase},
                     {"original_max_position_embeddings", table.rows},
                     {"short_factor", factors},
                     {"long_factor", factors},
                     {"attention_factor", magnitudeOf(table)}});
  return matches(attributes, table);
}

}  // namespace

bool fitRotary(Json& attributes, const AngleTable& table) {
  if (table.rows < 1 || table.pairs < 1 || table.cosines.empty()) return false;
  if (table.rows == 1) return fitRow(attributes, table);
  const auto frequency = [&](std::int64_t m) {
    const double turn = angleAt(table, 1, m) - angleAt(table, 0, m);
    return turn < 0.0 ? turn + 2.0 * std::numbers::pi : turn;
  };
  // The slowest pair has not yet come round; of a quantized table it says nothing.
  const std::int64_t slowest = table.rounding > 0.0 ? 0 : table.pairs - 1;
  const double slowly = table.rounding > 0.0 ? frequency(0) : frequencyOf(table, slowest);
  if (!setOffset(attributes, angleAt(table, 0, slowest) / std::max(slowly, 1e-12))) return false;
  if (table.rounding > 0.0 && fitCommon(attributes, table)) return true;
  const auto R = static_cast<double>(2 * table.pairs);
  const double first = frequency(0);
  double base = 10000.0;
  if (table.pairs > 1) base = std::pow(frequency(table.pairs - 1) / first, -R / (R - 2.0));
  for (const bool isScaled : {false, true}) {
    if (isScaled && first > 1.0 - 1e-4) continue;
    if (isScaled) attributes["rope_type"] = "linear", attributes["factor"] = rounded(1.0 / first, 6);
    for (int digits = 1; digits <= 9; ++digits) {
      attributes["rotary_base"] = rounded(base, digits);
      if (matches(attributes, table)) return true;
    }
  }
  return fitLlama3(attributes, table, frequency(std::min<std::int64_t>(1, table.pairs - 1))) ||
         fitYarn(attributes, table) || fitByPair(attributes, table);
}

}  // namespace fuseline
