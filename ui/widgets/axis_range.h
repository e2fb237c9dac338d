// Axes of plots: where a value stands on them, and which values are written beside them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace fuseline::ui {

/// A logarithmic axis.
struct LogRange {
  double low = 1.0;
  double high = 10.0;

  /// 0 at the low end, 1 at the high one; beyond them outside.
  double shareOf(double value) const;
  /// Powers of ten in the range, at most this number: every one, or every second, third, ...
  std::vector<double> decades(int most) const;
  /// 1, 2 and 5 times powers of ten, if at most this number is in the range; otherwise decades().
  std::vector<double> ticks(int most) const;
};

/// An even axis.
struct LinearRange {
  double low = 0.0;
  double high = 1.0;

  double shareOf(double value) const { return (value - low) / (high - low); }
  /// Multiples of 1, 2 or 5 times a power of ten in the range, at most this number.
  std::vector<double> ticks(int most) const;
};

/// One of both.
struct AxisRange {
  bool isLogarithmic = false;
  double low = 0.0;
  double high = 1.0;

  double shareOf(double value) const;
  std::vector<double> ticks(int most) const;
};

/// Whether ascending values stand more evenly on a logarithmic axis, as 128, 256, 512 do. Fewer than three: no.
bool isGeometric(const std::vector<double>& values);

}  // namespace fuseline::ui
