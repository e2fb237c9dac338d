// NumericsReport: what number formats did to the values of a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/quantization_losses.h"
#include "core/support/json.h"
#include "core/support/result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// How many elements of a tensor have which magnitude.
struct MagnitudeHistogram {
  int firstExponent = 0;             // counts[i]: 2^(firstExponent + i) <= |x| < 2^(firstExponent + i + 1)
  std::vector<std::int64_t> counts;  // empty: there is no number besides 0
  std::int64_t zeros = 0;
  bool operator==(const MagnitudeHistogram&) const = default;
};

/// NaN and infinity are not counted.
MagnitudeHistogram magnitudesOf(const std::vector<double>& values);

/// What a recipe's own quantizer would make of a tensor.
struct Requantized {
  std::string recipe;
  std::string format;  // "e4m3 (mx_1x32)"
  ElementFormat element = ElementFormat::E4M3;
  std::int64_t elements = 0;  // of the tensor's first rows: so many were quantized
  QuantizationLosses losses;
};

/// A quantized copy beside its tensor.
struct CopyNumerics {
  std::string name;    // "fc1.input@rowwise"
  std::string owner;   // the document's op
  std::string format;  // "e4m3 (mx_1x32)"
  QuantizationLosses losses;
  MagnitudeHistogram magnitudes = {};         // of the tensor
  std::vector<Requantized> requantized = {};  // of rowwise copies: under every recipe that fits the tensor
};

/// How far a tensor is from another that should be the same.
struct ErrorNumerics {
  std::string name;   // "y", "norm:y", "grad.fc1.weight"
  std::string owner;  // the document's op that makes it; empty: none
  double maxAbsolute = 0.0;
  double rmsRelative = 0.0;  // rms of the differences over the rms of the expected values
  double cosine = 1.0;       // of the angle between both
  /// Elements by their distance in units in the last place of the tensor's own dtype: at most 0.5, 1, 2, 4 ... 512 of
  /// them, and more.
  static constexpr int kUlpBuckets = 12;
  std::array<std::int64_t, kUlpBuckets> ulpHistogram = {};
  bool isFinite = true;  // neither has NaN or infinity where the other has a number
};

/// Elements that are NaN or infinite in both count as equal. expected: as many values as actual.
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

  /// The largest of all errors, by rmsRelative; nullptr: there is none.
  const ErrorNumerics* worst() const;
  /// The largest share over all copies.
  double worstUnderflow() const;
};

Json toJson(const NumericsReport& report);
/// The inverse; numbers that JSON cannot hold come back as infinity. Errors: sentences with the JSON pointer.
Result<NumericsReport> numericsFromJson(const Json& json);

}  // namespace fuseline
