// Small text helpers: nearest names for "did you mean", counts with units.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Levenshtein distance, case-insensitive.
int editDistance(std::string_view a, std::string_view b);

/// The candidate nearest to `name`; empty when there are no candidates or none is near.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

/// The candidate from which `name` differs by one or two typing errors; empty if there is none.
std::string misspelt(std::string_view name, std::span<const std::string_view> candidates);

/// The end of a sentence about an unknown name: "; did you mean RMSNorm?", or "." if no name is near.
std::string didYouMean(std::string_view near);

/// "1.50 MiB".
std::string formatBytes(std::int64_t bytes);
/// "1.23 ms", "45.6 us".
std::string formatDuration(double nanoseconds);
/// "12.3 GFLOP".
std::string formatFlops(double flops);

/// The double with the fewest digits that rounds to the same float32, where the value is one: 1e-05, and not
/// 9.999999747378752e-06. Other values stay.
double shortestReal(double value);

/// The text, or at most mostBytes of its bytes and "..."; never a part of a UTF-8 character.
std::string cutText(std::string_view text, std::size_t mostBytes);

/// "  (note)", or nothing for an empty text.
std::string inParentheses(std::string_view note);

}  // namespace fuseline
