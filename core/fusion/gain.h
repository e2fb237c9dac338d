// Gain of a fusion: predicted from the bytes and launches it saves, or measured in a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace fuseline {

/// Minimum saving of a fusion: bytes of memory traffic by the minimum-traffic model, and kernel launches.
struct Saving {
  std::int64_t bytes = 0;
  std::int64_t launches = 0;
  bool operator==(const Saving&) const = default;
};

/// Measured rates of a device. Neutral until they are measured: gains are then compared by bytes and, if these are
/// equal, by launches, and no prediction is a time.
struct DeviceModel {
  double bandwidthBytesPerSecond = 0.0;
  double launchSeconds = 0.0;
  std::string source;  // "the fastest step of llama.json, on AMD EPYC 9755, 2 threads"

  bool isKnown() const { return bandwidthBytesPerSecond > 0.0; }
};

/// The time that a saving is predicted to be worth; none on a neutral device.
std::optional<double> predictedNs(const Saving& saving, const DeviceModel& device);

/// Measured gain of one fusion at one place: its separate ops against the fusion, round by round.
struct MeasuredGain {
  double gainNs = 0.0;  // median; negative: the fusion is slower
  double speedup = 1.0;
  double speedupLow = 1.0;  // of the 95 % interval
  double speedupHigh = 1.0;
  std::string device;  // device of the measurement

  /// The interval excludes 1.
  bool isFaster() const { return speedupLow > 1.0; }
  bool isSlower() const { return speedupHigh < 1.0; }
  bool isClear() const { return isFaster() || isSlower(); }
};

/// Criteria for overlapping fusions.
struct GainModel {
  DeviceModel device;
  /// By the name of the fused step: "ForwardLinearEpilogue(fc1.linear, fc1.bias, act)". A measured figure takes
  /// precedence over an estimate.
  std::map<std::string, std::shared_ptr<const MeasuredGain>> measured;
  /// Off: the same fusions are chosen as without measurements; gains are only reported, and misses ordered by them.
  bool decides = true;
};

/// Gains that can be added up without rounding, so that equal sums are equal.
struct Gain {
  std::int64_t askedOps = 0;  // ops of fusions that the user requested by name
  std::int64_t measuredPs = 0;
  std::int64_t bytes = 0;
  std::int64_t launches = 0;
  std::int64_t priority = 0;  // decides between equals: the earlier rule of the book

  Gain& operator+=(const Gain& other);
  Gain& operator-=(const Gain& other);
  bool operator==(const Gain&) const = default;
};

/// The gain of one fusion, without the user's requests and the rule's priority. A measured figure takes precedence over
/// an estimate, unless it is within the spread of its measurement: it is then inconclusive, and the estimate is kept.
Gain gainOf(const Saving& saving, const MeasuredGain* measured = nullptr);

/// Is a's gain larger than b's? Requests come first, then time. On a neutral device measured time comes before bytes,
/// and bytes before launches. The priority comes last.
bool exceeds(const Gain& a, const Gain& b, const DeviceModel& device);

/// "384 B and 2 launches", "12.3 us (384 B and 2 launches)".
std::string toString(const Saving& saving, const DeviceModel& device);
/// "and measured to save 12.3 us (1.04x, 95 % interval 1.02 to 1.06) on AMD EPYC 9755, 2 threads".
std::string toString(const MeasuredGain& gain);
/// "predicted to save 384 B and 2 launches", followed by a measured figure if there is one.
std::string gainText(const Saving& saving, const MeasuredGain* measured, const DeviceModel& device);

}  // namespace fuseline
