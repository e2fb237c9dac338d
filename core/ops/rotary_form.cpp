// Frequencies and positions of rotary embeddings.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rotary_form.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kRotaryName = "RotaryPositionEmbedding";

double realOr(const Attributes& attributes, std::string_view name, double other) {
  return attributes.has(name) ? attributes.real(name) : other;
}

double originalLength(const Attributes& attributes) {
  return static_cast<double>(attributes.integer("original_max_position_embeddings"));
}

/// base^(-2 m / R)
std::vector<double> plainFrequencies(double base, std::int64_t rotated) {
  std::vector<double> frequencies;
  for (std::int64_t m = 0; m < rotated / 2; ++m)
    frequencies.push_back(std::pow(base, -2.0 * static_cast<double>(m) / static_cast<double>(rotated)));
  return frequencies;
}

/// The base grows with the length beyond the original one, so that the slowest pair turns as far as before.
double dynamicBase(const Attributes& attributes, std::int64_t rotated, std::int64_t length) {
  const double base = attributes.real("rotary_base");
  const double original = originalLength(attributes);
  const double factor = attributes.real("factor");
  const double longest = std::max(static_cast<double>(length), original);
  const auto R = static_cast<double>(rotated);
  return base * std::pow(factor * longest / original - (factor - 1.0), R / (R - 2.0));
}

/// Slow pairs are slowed down by `factor`, fast ones stay, and those in between go over.
double llama3Frequency(const Attributes& attributes, double frequency) {
  const double low = attributes.real("low_freq_factor");
  const double high = attributes.real("high_freq_factor");
  const double turns = originalLength(attributes) * frequency / (2.0 * std::numbers::pi);
  if (turns > high) return frequency;
  const double slow = frequency / attributes.real("factor");
  if (turns < low) return slow;
  const double share = (turns - low) / (high - low);
  return (1.0 - share) * slow + share * frequency;
}

/// Pairs below `low` stay, those above `high` are slowed down, both as (fractional) numbers of pairs.
struct YarnRamp {
  double low = 0.0;
  double high = 0.0;
  /// The share that is slowed down.
  double at(std::int64_t m) const { return std::clamp((static_cast<double>(m) - low) / (high - low), 0.0, 1.0); }
};

YarnRamp yarnRamp(const Attributes& attributes, std::int64_t rotated) {
  const auto R = static_cast<double>(rotated);
  const auto pairOf = [&](double turns) {
    return R * std::log(originalLength(attributes) / (turns * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(attributes.real("rotary_base")));
  };
  YarnRamp ramp{.low = pairOf(attributes.real("beta_fast")), .high = pairOf(attributes.real("beta_slow"))};
  if (attributes.boolean("truncate")) ramp = {.low = std::floor(ramp.low), .high = std::ceil(ramp.high)};
  ramp = {.low = std::max(ramp.low, 0.0), .high = std::min(ramp.high, R - 1.0)};
  if (ramp.low == ramp.high) ramp.high += 0.001;
  return ramp;
}

bool hasInterpolation(const Attributes& attributes) {
  return attributes.has("seq_len_interpolation_factor") && attributes.has("pretrained_max_position_embeddings");
}

/// TransformerEngine's own interpolation multiplies positions, which is to multiply frequencies.
double interpolation(const Attributes& attributes, std::int64_t length) {
  if (!hasInterpolation(attributes)) return 1.0;
  const double factor = attributes.real("seq_len_interpolation_factor");
  const auto pretrained = static_cast<double>(attributes.integer("pretrained_max_position_embeddings"));
  const auto longest = static_cast<double>(length);
  return longest > pretrained * factor ? pretrained / longest : 1.0 / factor;
}

/// Each pair has a factor of its own, and another beyond the original length.
void scaleByPair(const Attributes& attributes, std::int64_t length, std::vector<double>& frequencies) {
  const bool isLong = static_cast<double>(length) > originalLength(attributes);
  const Result<std::vector<double>> factors = rotaryFactors(attributes, isLong ? "long_factor" : "short_factor");
  for (std::size_t m = 0; factors && m < std::min(frequencies.size(), factors->size()); ++m)
    frequencies[m] /= (*factors)[m];
}

void scaleByType(const Attributes& attributes, std::int64_t rotated, std::int64_t length,
                 std::vector<double>& frequencies) {
  const std::string& type = attributes.text("rope_type");
  if (type == "longrope") scaleByPair(attributes, length, frequencies);
  if (type == "linear")
    for (double& frequency : frequencies) frequency /= attributes.real("factor");
  if (type == "llama3")
    for (double& frequency : frequencies) frequency = llama3Frequency(attributes, frequency);
  if (type != "yarn") return;
  const YarnRamp ramp = yarnRamp(attributes, rotated);
  for (std::size_t m = 0; m < frequencies.size(); ++m) {
    const double slowed = ramp.at(static_cast<std::int64_t>(m));
    frequencies[m] *= 1.0 - slowed + slowed / attributes.real("factor");
  }
}

}  // namespace

RotaryForm rotaryForm(const Attributes& attributes) {
  RotaryForm form{.format = qkvFormat(attributes.text("tensor_format")),
                  .isInterleaved = attributes.boolean("interleaved"),
                  .offset = attributes.integer("offset")};
  int slot = RotaryForm::kInput + 1;
  if (form.format == QkvFormat::Thd) form.cuSeqlensSlot = slot++;
  if (attributes.boolean("start_positions")) form.startPositionsSlot = slot++;
  if (attributes.has("max_seq_len")) form.maxLength = attributes.integer("max_seq_len");
  if (!attributes.has("dim")) return form;
  form.dim = attributes.integer("dim");
  form.rotated = static_cast<std::int64_t>(static_cast<double>(form.dim) * attributes.real("rotary_percent"));
  return form;
}

Result<TokenLayout> rotaryLayout(const RotaryForm& form, const Shape& x) {
  const std::size_t tokenAxes = form.format == QkvFormat::Thd ? 1 : 2;
  std::int64_t width = 1;
  for (std::size_t axis = tokenAxes; axis < x.size(); ++axis) width = saturatedProduct(width, x[axis]);
  const std::int64_t heads = std::max<std::int64_t>(1, width / form.dim);
  return tokenLayout(kRotaryName, "x", form.format, x, heads, form.dim);
}

bool hasFrequenciesByLength(const Attributes& attributes) {
  const std::string& type = attributes.text("rope_type");
  return type == "dynamic" || type == "longrope" || hasInterpolation(attributes);
}

std::vector<double> rotaryFrequencies(const Attributes& attributes, std::int64_t length) {
  if (attributes.has("max_seq_len")) length = attributes.integer("max_seq_len");
  const std::int64_t rotated = rotaryForm(attributes).rotated;
  const bool isDynamic = attributes.text("rope_type") == "dynamic";
  const double base = isDynamic ? dynamicBase(attributes, rotated, length) : attributes.real("rotary_base");
  std::vector<double> frequencies = plainFrequencies(base, rotated);
  scaleByType(attributes, rotated, length, frequencies);
  for (double& frequency : frequencies) frequency *= interpolation(attributes, length);
  return frequencies;
}

Result<std::vector<double>> rotaryFactors(const Attributes& attributes, std::string_view name) {
  const std::string& text = attributes.text(name);
  std::vector<double> factors;
  const char* rest = text.c_str();
  for (char* end = nullptr; *rest != '\0'; rest = end) {
    factors.push_back(std::strtod(rest, &end));
    if (end == rest || !std::isfinite(factors.back()) || factors.back() <= 0.0)
      return Error{fmt::format("{} is \"{}\"; expected numbers above 0, with commas between them.", name, text)};
    while (*end == ',' || *end == ' ') ++end;
  }
  return factors;
}

double rotaryAttentionFactor(const Attributes& attributes) {
  const std::string& type = attributes.text("rope_type");
  if (type != "yarn" && type != "longrope") return 1.0;
  if (attributes.has("attention_factor")) return attributes.real("attention_factor");
  const double factor = attributes.real("factor");
  if (factor <= 1.0) return 1.0;
  if (type == "longrope") return std::sqrt(1.0 + std::log(factor) / std::log(originalLength(attributes)));
  const auto scaled = [&](double mscale) { return 0.1 * mscale * std::log(factor) + 1.0; };
  const double mscale = realOr(attributes, "mscale", 0.0);
  const double mscaleAllDim = realOr(attributes, "mscale_all_dim", 0.0);
  return mscale != 0.0 && mscaleAllDim != 0.0 ? scaled(mscale) / scaled(mscaleAllDim) : scaled(1.0);
}

std::int64_t rotaryLength(const RotaryForm& form, const TokenLayout& x) { return x.tokens + form.offset; }

Result<std::vector<std::int64_t>> rotaryPositions(const RotaryForm& form, const TokenLayout& x,
                                                  std::span<const std::int64_t> cuSeqlens,
                                                  std::span<const std::int64_t> startPositions) {
  const Result<std::vector<TokenSpan>> sequences = sequencesOf(form.format, x, "cu_seqlens", cuSeqlens);
  if (!sequences) return sequences.error();
  std::vector<std::int64_t> positions(static_cast<std::size_t>(x.batch * x.tokens), -1);
  for (std::size_t i = 0; i < sequences->size(); ++i) {
    const TokenSpan& tokens = (*sequences)[i];
    const std::int64_t start = startPositions.empty() ? 0 : startPositions[i];
    if (start < 0) return Error{fmt::format("start_positions[{}] is {}; a position must not be negative.", i, start)};
    const std::int64_t end = form.offset + start + tokens.size;
    if (form.maxLength > 0 && end > form.maxLength)
      return Error{fmt::format("Sequence {} ends at position {}, but max_seq_len is {}; set it to at least {}.", i,
                               end - 1, form.maxLength, end)};
    const std::int64_t entry = form.format == QkvFormat::Thd ? 0 : static_cast<std::int64_t>(i);
    for (std::int64_t token = 0; token < tokens.size; ++token)
      positions[static_cast<std::size_t>(entry * x.tokens + tokens.first + token)] = form.offset + start + token;
  }
  return positions;
}

}  // namespace fuseline
