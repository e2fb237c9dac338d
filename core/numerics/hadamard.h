// The random Hadamard transform of 16 values, and its inverse. Usable in device code: no library calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline {

constexpr int kHadamardSize = 16;

namespace hadamard {

/// Which of the 16 signs are negative. Source: TransformerEngine, wgrad operands of NVFP4.
constexpr std::uint32_t kNegative = 0b1101'0111'1110'1000u;

constexpr void applySigns(double (&x)[kHadamardSize]) {
  for (int i = 0; i < kHadamardSize; ++i)
    if ((kNegative >> i) & 1u) x[i] = -x[i];
}

/// Butterflies of values at distance kHalf, then of those at twice the distance.
template <int kHalf>
constexpr void butterflies(double (&x)[kHadamardSize]) {
  for (int pair = 0; pair < kHadamardSize / 2; ++pair) {
    const int i = pair / kHalf * 2 * kHalf + pair % kHalf;
    const double a = x[i];
    const double b = x[i + kHalf];
    x[i] = a + b;
    x[i + kHalf] = a - b;
  }
  if constexpr (2 * kHalf < kHadamardSize) butterflies<2 * kHalf>(x);
}

/// x * H / 4, where H is Sylvester's matrix: orthogonal and symmetric. Sums in double are exact except for extreme
/// ranges.
constexpr void transform(double (&x)[kHadamardSize]) {
  butterflies<1>(x);
  for (double& value : x) value *= 0.25;
}

}  // namespace hadamard

/// x becomes x * diag(signs) * H / 4.
constexpr void randomHadamard(double (&x)[kHadamardSize]) {
  hadamard::applySigns(x);
  hadamard::transform(x);
}

constexpr void inverseRandomHadamard(double (&x)[kHadamardSize]) {
  hadamard::transform(x);
  hadamard::applySigns(x);
}

}  // namespace fuseline
