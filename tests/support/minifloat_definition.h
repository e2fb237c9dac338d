// Small number formats by their definition, in double and without the code under test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fuseline::testing {

/// A format with a sign, some exponent bits and some mantissa bits.
struct MinifloatDefinition {
  std::string name;
  int exponentBits;
  int mantissaBits;
  int bias;
  int maxCode;       // the largest finite value
  int infinityCode;  // -1: none
  int overflowCode;  // result of overflow without saturation
  int nanCode;       // result of NaN

  int signBit() const { return 1 << (exponentBits + mantissaBits); }

  /// Value of a finite encoding.
  double valueOf(int code) const {
    const int exponent = (code & (signBit() - 1)) >> mantissaBits;
    const int mantissa = code & ((1 << mantissaBits) - 1);
    const double significand = mantissa + (exponent == 0 ? 0 : 1 << mantissaBits);
    const double magnitude = std::ldexp(significand, std::max(exponent, 1) - bias - mantissaBits);
    return (code & signBit()) != 0 ? -magnitude : magnitude;
  }

  /// magnitudes()[code] of every finite code without a sign, in order.
  std::vector<double> magnitudes() const {
    std::vector<double> values;
    for (int code = 0; code <= maxCode; ++code) values.push_back(valueOf(code));
    return values;
  }

  /// The value that would follow the largest one if there were no end.
  double afterMax() const { return 2 * valueOf(maxCode) - valueOf(maxCode - 1); }
};

/// Bits, bias and special encodings of the OCP specifications; the results of overflow and NaN are CUDA's choice.
inline const MinifloatDefinition kE4M3Definition = {"E4M3", 4, 3, 7, 0x7e, -1, 0x7f, 0x7f};
inline const MinifloatDefinition kE5M2Definition = {"E5M2", 5, 2, 15, 0x7b, 0x7c, 0x7c, 0x7f};
inline const MinifloatDefinition kE2M1Definition = {"E2M1", 2, 1, 1, 0x7, -1, 0x7, 0x7};

}  // namespace fuseline::testing
