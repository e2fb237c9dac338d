// From which size on fusing is faster, in the words that the measurements allow.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/break_even.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

/// Sizes 1, 2, 4 ...: F(aster), S(lower) or U(ndecided).
BreakEven of(std::string_view gains) {
  std::vector<SizedGain> sized;
  std::int64_t size = 1;
  for (const char gain : gains) {
    sized.push_back({size, gain == 'F'   ? FusionGain::Faster
                           : gain == 'S' ? FusionGain::Slower
                                         : FusionGain::Undecided});
    size *= 2;
  }
  return breakEvenOf(std::move(sized));
}

std::string sentence(std::string_view gains) { return sentenceOf(of(gains), "M"); }

TEST(BreakEven, IsWhereTheSignChanges) {
  EXPECT_EQ(sentence("SSFF"), "fused is faster from M = 4 on; slower at 1, 2");
  EXPECT_EQ(sentence("FFS"), "fused is faster up to M = 2; slower at 4");
  EXPECT_EQ(sentence("FF"), "fused is faster at all measured sizes of M");
  EXPECT_EQ(sentence("SS"), "fused is slower at all measured sizes of M");
}

TEST(BreakEven, SaysWhatTheNoiseHides) {
  EXPECT_EQ(sentence("SUFF"), "fused is faster from M = 4 on; slower at 1; no significant difference at 2");
  EXPECT_EQ(sentence("UU"), "no significant difference at any M");
  EXPECT_EQ(sentence("US"), "fused is not faster at any size of M; slower at 2; no significant difference at 1");
}

TEST(BreakEven, IsNoneWhereTheSignChangesTwice) {
  EXPECT_EQ(sentence("FSF"), "fused is faster at some sizes of M; faster at 1, 4; slower at 2");
  EXPECT_EQ(of("FUF").kind, BreakEven::Kind::Mixed) << "what is between could be slower";
  EXPECT_EQ(of("").kind, BreakEven::Kind::NotMeasured);
}

TEST(BreakEven, DoesNotDependOnTheOrder) {
  const BreakEven breakEven =
      breakEvenOf({{512, FusionGain::Faster}, {128, FusionGain::Slower}, {256, FusionGain::Faster}});
  EXPECT_EQ(breakEven.kind, BreakEven::Kind::From);
  EXPECT_EQ(breakEven.size, 256);
}

TEST(BreakEven, ARatioThatCouldBeChanceDecidesNothing) {
  EXPECT_EQ(gainOf({.median = 1.5, .low = 0.9, .high = 2.0}), FusionGain::Undecided);
  EXPECT_EQ(gainOf({.median = 1.5, .low = 1.4, .high = 2.0}), FusionGain::Faster);
  EXPECT_EQ(gainOf({.median = 0.5, .low = 0.4, .high = 0.6}), FusionGain::Slower);
}

}  // namespace
}  // namespace fuseline
