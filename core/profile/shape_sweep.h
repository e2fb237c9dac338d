// ShapeSweep: the sizes at which a pipeline is measured, as axes and their points.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// Name of the axis whose sizes are numbers of tensor-parallel ranks.
inline constexpr std::string_view kRanksAxis = "ranks";
/// Name of the axis whose sizes are numbers of chunks of collectives (--chunks).
inline constexpr std::string_view kChunksAxis = "chunks";

/// A symbol of the pipeline, kRanksAxis or kChunksAxis, and the values that it takes.
struct SweepAxis {
  std::string symbol;
  std::vector<std::int64_t> sizes;
};

/// One pipeline to measure.
struct SweepPoint {
  std::vector<std::pair<std::string, std::int64_t>> symbols;  // in the order of the axes
  std::string recipe;                                         // empty: there is no axis of recipes

  /// "M=512 H=4096 MXFP8BlockScaling"
  std::string name() const;
  /// Puts the point into the settings of a run; the point's symbols replace those of the settings.
  void applyTo(RunSpec& settings) const;
};

struct ShapeSweep {
  /// At least one: break-even points are computed along the first.
  std::vector<SweepAxis> axes;
  /// Names of recipes; empty: the recipe of the settings.
  std::vector<std::string> recipes;

  /// Errors (Usage): more points than the maximum.
  Result<void> checkSize() const;
  /// The whole grid. The first axis varies fastest, so that its points are contiguous; recipes slowest.
  std::vector<SweepPoint> points() const;
};

/// "128:16384:x2", "128:1024:+128" or "512,1024,4096". Errors (Usage): the unexpected part, and the valid values.
Result<std::vector<std::int64_t>> parseSizes(std::string_view text);
/// The shortest text that parseSizes() reads as these sizes.
std::string sizesText(std::span<const std::int64_t> sizes);
/// Sizes up to twice the given one in powers of two, from an eighth of it if it can be halved that often: 128 to 2048
/// for 1024.
std::vector<std::int64_t> sizesAround(std::int64_t size);

/// Texts such as "M=128:16384:x2", "M=128:1024:+128", "M=512,1024,4096", "ranks=1,2,4" and
/// "recipe=none,mxfp8".
/// Errors (Usage): the unexpected part of a text, and the valid values; no axis of sizes; an axis twice; more points
/// than the maximum.
Result<ShapeSweep> parseSweep(std::span<const std::string> texts);

}  // namespace fuseline
