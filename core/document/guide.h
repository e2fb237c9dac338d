// The guide: pages about the product, and a section for each code of a problem.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

struct GuidePage {
  std::string_view name;   // "measuring"
  std::string_view title;  // its first heading
  std::string_view text;   // Markdown, the heading included
};

std::span<const GuidePage> guidePages();

/// Section of the guide about a code such as "shape-mismatch": Markdown without the heading. nullopt: there is no such
/// code.
std::optional<std::string_view> problemGuide(std::string_view code);
/// In the order of the guide.
std::vector<std::string> problemCodes();

}  // namespace fuseline
