// NumericsReport: effects of number formats on the values of a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantization_losses.h"
#include "core/support/json.h"
#include "core/support/result.h"
#include "core/tensor/tolerance.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

template <class T>
class FieldTable;

/// How many elements of a tensor have which magnitude.
struct MagnitudeHistogram {
  int firstExponent = 0;             // counts[i]: 2^(firstExponent + i) <= |x| < 2^(firstExponent + i + 1)
  std::vector<std::int64_t> counts;  // empty: all numbers are 0
  std::int64_t zeros = 0;
  bool operator==(const MagnitudeHistogram&) const = default;
};

const FieldTable<MagnitudeHistogram>& fieldsOf(const MagnitudeHistogram*);

/// NaN and infinity are not counted.
MagnitudeHistogram magnitudesOf(const std::vector<double>& values);

/// Result of a recipe's own quantizer for a tensor.
struct Requantized {
  std::string recipe;
  std::string format;  // "e4m3 (mx_1x32)"
  ElementFormat element = ElementFormat::E4M3;
  std::int64_t elements = 0;  // number of quantized elements, from the tensor's first rows
  QuantizationLosses losses;
};

/// Numerics of a quantized tensor, compared with its source.
struct CopyNumerics {
  std::string name;    // "fc1.input@rowwise"
  std::string owner;   // the document's op
  std::string format;  // "e4m3 (mx_1x32)"
  QuantizationLosses losses;
  MagnitudeHistogram magnitudes = {};         // of the tensor
  std::vector<Requantized> requantized = {};  // of rowwise quantized tensors: under every recipe that fits the tensor
};

/// The losses of a quantized tensor that a run keeps, without its histograms.
struct CopyLosses {
  std::string name;    // "fc1.input@rowwise"
  std::string owner;   // the document's op
  std::string format;  // "e4m3 (mx_1x32)"
  QuantizationLosses losses;
  bool operator==(const CopyLosses&) const = default;
};
const FieldTable<CopyLosses>& fieldsOf(const CopyLosses*);

/// How far a tensor is from another that should be the same.
struct ErrorNumerics {
  std::string name;   // "y", "norm:y", "grad.fc1.weight"
  std::string owner;  // the document's op that produces it; empty: none
  double maxAbsolute = 0.0;
  double rmsRelative = 0.0;  // rms of the differences over that of the expected values, if these are not all 0
  double cosine = 1.0;       // of the angle between both
  /// Elements by their distance in units in the last place of the tensor's own dtype: at most 0.5, 1, 2, 4 ... 512 of
  /// them, and more.
  static constexpr int kUlpBuckets = 12;
  std::array<std::int64_t, kUlpBuckets> ulpHistogram = {};
  bool isFinite = true;  // some elements are numbers, none is NaN, and both have their infinities at the same places
  /// Allowed difference, relative to the values.
  double tolerance = 0.0;
  /// Share of the tolerance that the differences use: 1 is the limit. It is the larger of two shares: that of the rms
  /// of the differences, and that of the largest difference, for which eight times the tolerance is allowed relative to
  /// the rms of the values: among a million normally distributed elements, one is five times as far off as the rms.
  /// The rms is the largest of those of all values, of the element's row and of its column, because rounding errors of
  /// a sum are as large as its terms: gradients of the first tokens of a causal attention sum over all queries.
  double toleranceShare = 0.0;

  bool isWithin() const { return isFinite && toleranceShare <= 1.0; }
  /// The units in the last place that this share of the elements is within: 0.5, 1, 2 ... 512; infinity: more.
  double ulpsOf(double share) const;
};

/// Elements that are infinite in both count as equal; NaN never does, as a result with NaN is useless however well it
/// agrees. expected: the same number of values as actual. cols: of the matrix of the values; 0: they are none.
ErrorNumerics errorOf(std::string name, const std::vector<double>& actual, const std::vector<double>& expected,
                      DType dtype, const Tolerance& tolerance, std::int64_t cols = 0);
/// With the tolerance of the dtype.
ErrorNumerics errorOf(std::string name, const std::vector<double>& actual, const std::vector<double>& expected,
                      DType dtype);

/// Where NaN or infinity first appears.
struct NonFiniteOrigin {
  std::string step;
  std::string tensor;
  std::string phase;
};

/// A scale of delayed scaling that an infinite amax keeps from following its tensor.
struct FrozenScale {
  std::string name;   // "fc1.input"
  std::string owner;  // the document's op
  float scale = 1.0F;
  int steps = 0;  // for how many more
};

struct NumericsReport {
  std::string recipe;
  std::vector<CopyNumerics> copies;
  std::vector<FrozenScale> frozenScales;
  /// Every op's outputs and gradients in the unfused run against the same pipeline in float32.
  std::vector<ErrorNumerics> errors;
  /// The fused run against the unfused one.
  std::vector<ErrorNumerics> fusionErrors;
  std::optional<NonFiniteOrigin> firstNonFinite;

  /// The largest of all errors, by rmsRelative; nullptr if there is none.
  const ErrorNumerics* worst() const;
  /// The largest share over all quantized tensors.
  double worstUnderflow() const;
};

/// Are all within their tolerances, and which is furthest from it, or nearest to its limit?
struct NumericsVerdict {
  bool isWithin = true;
  std::string worst;            // empty: there was nothing to compare
  double toleranceShare = 0.0;  // infinity: no tolerance allows it, as NaN
  bool operator==(const NumericsVerdict&) const = default;
};
NumericsVerdict verdictOf(const std::vector<ErrorNumerics>& errors);
const FieldTable<NumericsVerdict>& fieldsOf(const NumericsVerdict*);

const FieldTable<NumericsReport>& fieldsOf(const NumericsReport*);
Json toJson(const NumericsReport& report);
/// The inverse; numbers that JSON cannot hold come back as infinity. Errors: sentences with the JSON pointer.
Result<NumericsReport> numericsFromJson(const Json& json);

}  // namespace fuseline
