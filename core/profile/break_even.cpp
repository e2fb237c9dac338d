// Finds where the sign of a gain changes.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/break_even.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

using Kind = BreakEven::Kind;

std::vector<std::int64_t> sizesWith(const std::vector<SizedGain>& gains, FusionGain gain) {
  std::vector<std::int64_t> sizes;
  for (const SizedGain& each : gains)
    if (each.gain == gain) sizes.push_back(each.size);
  return sizes;
}

bool isFaster(const SizedGain& each) { return each.gain == FusionGain::Faster; }

/// Where some sizes are faster and some are not.
void findBorder(const std::vector<SizedGain>& gains, BreakEven& breakEven) {
  breakEven.kind = Kind::Mixed;
  if (std::ranges::is_partitioned(gains, isFaster)) {
    breakEven.kind = Kind::UpTo;
    breakEven.size = breakEven.faster.back();
  }
  const auto isNotFaster = [](const SizedGain& each) { return !isFaster(each); };
  if (std::ranges::is_partitioned(gains, isNotFaster)) {
    breakEven.kind = Kind::From;
    breakEven.size = breakEven.faster.front();
  }
}

std::string at(std::string_view what, const std::vector<std::int64_t>& sizes) {
  return sizes.empty() ? "" : fmt::format("; {} at {}", what, fmt::join(sizes, ", "));
}

std::string restOf(const BreakEven& breakEven) {
  return at("slower", breakEven.slower) + at("no significant difference", breakEven.undecided);
}

}  // namespace

FusionGain gainOf(const RatioStats& speedup) {
  if (!speedup.isSignificant()) return FusionGain::Undecided;
  return speedup.median > 1.0 ? FusionGain::Faster : FusionGain::Slower;
}

BreakEven breakEvenOf(std::vector<SizedGain> gains) {
  std::ranges::sort(gains, {}, &SizedGain::size);
  BreakEven breakEven{.faster = sizesWith(gains, FusionGain::Faster),
                      .slower = sizesWith(gains, FusionGain::Slower),
                      .undecided = sizesWith(gains, FusionGain::Undecided)};
  if (gains.empty()) return breakEven;
  if (breakEven.faster.size() == gains.size())
    breakEven.kind = Kind::AtAllSizes;
  else if (breakEven.slower.size() == gains.size())
    breakEven.kind = Kind::Never;
  else if (breakEven.undecided.size() == gains.size())
    breakEven.kind = Kind::Undecided;
  else if (breakEven.faster.empty())
    breakEven.kind = Kind::Mixed;
  else
    findBorder(gains, breakEven);
  return breakEven;
}

std::string_view nameOf(Kind kind) {
  switch (kind) {
    case Kind::AtAllSizes: return "atAllSizes";
    case Kind::Never: return "never";
    case Kind::From: return "from";
    case Kind::UpTo: return "upTo";
    case Kind::Undecided: return "undecided";
    case Kind::Mixed: return "mixed";
    case Kind::NotMeasured: return "notMeasured";
  }
  return "";
}

std::string sentenceOf(const BreakEven& breakEven, std::string_view symbol) {
  switch (breakEven.kind) {
    case Kind::AtAllSizes: return fmt::format("fused is faster at all measured sizes of {}", symbol);
    case Kind::Never: return fmt::format("fused is slower at all measured sizes of {}", symbol);
    case Kind::From: return fmt::format("fused is faster from {} = {} on{}", symbol, breakEven.size, restOf(breakEven));
    case Kind::UpTo: return fmt::format("fused is faster up to {} = {}{}", symbol, breakEven.size, restOf(breakEven));
    case Kind::Undecided: return fmt::format("no significant difference at any {}", symbol);
    case Kind::Mixed:
      return breakEven.faster.empty()
                 ? fmt::format("fused is not faster at any size of {}{}", symbol, restOf(breakEven))
                 : fmt::format("fused is faster at some sizes of {}{}{}", symbol, at("faster", breakEven.faster),
                               restOf(breakEven));
    case Kind::NotMeasured: return fmt::format("no size of {} was measured", symbol);
  }
  return "";
}

}  // namespace fuseline
