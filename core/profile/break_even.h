// BreakEven: from which size on fusing is faster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/stats.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Result of a measurement at one size.
enum class FusionGain { Faster, Slower, Undecided };
/// Undecided: the ratio is not statistically significant.
FusionGain gainOf(const RatioStats& speedup);

struct BreakEven {
  enum class Kind {
    AtAllSizes,   // faster at each
    Never,        // slower at each
    From,         // faster from `size` on, and at none below
    UpTo,         // faster up to `size`, and at none above
    Undecided,    // no size has a difference beyond its noise
    Mixed,        // anything else
    NotMeasured,  // there is no size
  };
  Kind kind = Kind::NotMeasured;
  std::int64_t size = 0;
  /// In ascending order.
  std::vector<std::int64_t> faster, slower, undecided;
};

struct SizedGain {
  std::int64_t size = 0;
  FusionGain gain = FusionGain::Undecided;
};

/// Sizes in any order, each once. Reports only measured sizes: nothing is interpolated.
BreakEven breakEvenOf(std::vector<SizedGain> gains);

/// "atAllSizes", "never", "from", "upTo", "undecided", "mixed", "notMeasured".
std::string_view nameOf(BreakEven::Kind kind);
/// "fused is faster from M = 512 on; slower at 128; no significant difference at 256"
std::string sentenceOf(const BreakEven& breakEven, std::string_view symbol);

}  // namespace fuseline
