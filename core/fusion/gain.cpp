// Compares and prints gains.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/gain.h"

#include "core/support/text.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr double kPsPerNs = 1e3;

/// The sign of the first number that is not 0.
template <std::size_t Size>
int signOfFirst(const std::array<std::int64_t, Size>& numbers) {
  for (const std::int64_t number : numbers)
    if (number != 0) return number > 0 ? 1 : -1;
  return 0;
}

int signOfTime(const Gain& difference, const DeviceModel& device) {
  if (!device.isKnown()) return signOfFirst<3>({difference.measuredPs, difference.bytes, difference.launches});
  const double ns = static_cast<double>(difference.measuredPs) / kPsPerNs +
                    *predictedNs({.bytes = difference.bytes, .launches = difference.launches}, device);
  return ns > 0.0 ? 1 : (ns < 0.0 ? -1 : 0);
}

std::string launchesText(std::int64_t launches) {
  return fmt::format("{} launch{}", launches, launches == 1 ? "" : "es");
}

std::string savingText(const Saving& saving) {
  if (saving.launches == 0) return formatBytes(saving.bytes);
  return fmt::format("{} and {}", formatBytes(saving.bytes), launchesText(saving.launches));
}

}  // namespace

std::optional<double> predictedNs(const Saving& saving, const DeviceModel& device) {
  if (!device.isKnown()) return std::nullopt;
  return 1e9 * (static_cast<double>(saving.bytes) / device.bandwidthBytesPerSecond +
                static_cast<double>(saving.launches) * device.launchSeconds);
}

Gain& Gain::operator+=(const Gain& other) {
  askedOps += other.askedOps;
  measuredPs += other.measuredPs;
  bytes += other.bytes;
  launches += other.launches;
  priority += other.priority;
  return *this;
}

Gain& Gain::operator-=(const Gain& other) {
  askedOps -= other.askedOps;
  measuredPs -= other.measuredPs;
  bytes -= other.bytes;
  launches -= other.launches;
  priority -= other.priority;
  return *this;
}

Gain gainOf(const Saving& saving, const MeasuredGain* measured) {
  if (!measured || !measured->isClear()) return {.bytes = saving.bytes, .launches = saving.launches};
  return {.measuredPs = std::llround(measured->gainNs * kPsPerNs)};
}

bool exceeds(const Gain& a, const Gain& b, const DeviceModel& device) {
  Gain difference = a;
  difference -= b;
  const int time = signOfTime(difference, device);
  return signOfFirst<3>({difference.askedOps, time, difference.priority}) > 0;
}

std::string toString(const Saving& saving, const DeviceModel& device) {
  const std::optional<double> ns = predictedNs(saving, device);
  return ns ? fmt::format("{} ({})", formatDuration(*ns), savingText(saving)) : savingText(saving);
}

std::string toString(const MeasuredGain& gain) {
  const std::string ratio = fmt::format("({:.2f}x, 95 % interval {:.2f} to {:.2f}) on {}", gain.speedup,
                                        gain.speedupLow, gain.speedupHigh, gain.device);
  if (!gain.isClear()) return "and measured without a significant difference " + ratio;
  return fmt::format("{} {} {}", gain.isFaster() ? "and measured to save" : "but measured to lose",
                     formatDuration(std::abs(gain.gainNs)), ratio);
}

std::string gainText(const Saving& saving, const MeasuredGain* measured, const DeviceModel& device) {
  const std::string predicted = "predicted to save " + toString(saving, device);
  return measured ? fmt::format("{} {}", predicted, toString(*measured)) : predicted;
}

}  // namespace fuseline
