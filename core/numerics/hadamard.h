// The random Hadamard transform of 16 values, and its inverse. Usable in device code: no library calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline {

constexpr int kHadamardSize = 16;

namespace hadamard {

/// Which of the 16 signs are negative. Source: TransformerEngine, wgrad operands of NVFP4.
constexpr std::uint32_t kNegative = 0b1101'0111'1110'1000u;

template <class T>
constexpr void applySigns(T (&x)[kHadamardSize]) {
  for (int i = 0; i < kHadamardSize; ++i)
    if ((kNegative >> i) & 1u) x[i] = -x[i];
}

/// Butterflies of values at distance kHalf, then of those at twice the distance.
template <int kHalf, class T>
constexpr void butterflies(T (&x)[kHadamardSize]) {
  for (int pair = 0; pair < kHadamardSize / 2; ++pair) {
    const int i = pair / kHalf * 2 * kHalf + pair % kHalf;
    const T a = x[i];
    const T b = x[i + kHalf];
    x[i] = a + b;
    x[i + kHalf] = a - b;
  }
  if constexpr (2 * kHalf < kHadamardSize) butterflies<2 * kHalf>(x);
}

/// x * H / 4, where H is Sylvester's matrix: orthogonal and symmetric. Sums in double are exact except for extreme
/// ranges.
template <class T>
constexpr void transform(T (&x)[kHadamardSize]) {
  butterflies<1>(x);
  for (T& value : x) value *= T{0.25};
}

}  // namespace hadamard

/// x becomes x * diag(signs) * H / 4.
template <class T>
constexpr void randomHadamard(T (&x)[kHadamardSize]) {
  hadamard::applySigns(x);
  hadamard::transform(x);
}

template <class T>
constexpr void inverseRandomHadamard(T (&x)[kHadamardSize]) {
  hadamard::transform(x);
  hadamard::applySigns(x);
}

}  // namespace fuseline
