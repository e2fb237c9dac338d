// Pages that were compiled in by CMakeLists.txt, and the headings in them.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/guide.h"

#include <algorithm>

namespace fuseline {

namespace {

constexpr std::string_view kCodeHeading = "\n### ";

constexpr GuidePage page(std::string_view name, std::string_view text) {
  const std::string_view heading = text.substr(0, text.find('\n'));
  return {name, heading.substr(heading.find(' ') + 1), text};
}

constexpr GuidePage kPages[] = {
#define FUSELINE_PAGE(name, text) page(#name, text),
#include "core/document/guide.inc"
#undef FUSELINE_PAGE
};

std::string_view problemsPage() { return std::ranges::find(kPages, "problems", &GuidePage::name)->text; }

/// Up to the next heading of any level, without the empty line before it.
std::string_view firstSection(std::string_view text) {
  text = text.substr(0, text.find("\n#"));
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

}  // namespace

std::span<const GuidePage> guidePages() { return kPages; }

std::optional<std::string_view> problemGuide(std::string_view code) {
  const std::string heading = std::string(kCodeHeading) + std::string(code) + "\n";
  const std::string_view text = problemsPage();
  const std::size_t at = text.find(heading);
  if (code.empty() || at == std::string_view::npos) return std::nullopt;
  return firstSection(text.substr(at + heading.size()));
}

std::vector<std::string> problemCodes() {
  std::vector<std::string> codes;
  const std::string_view text = problemsPage();
  for (std::size_t at = text.find(kCodeHeading); at != std::string_view::npos; at = text.find(kCodeHeading, at + 1)) {
    const std::size_t start = at + kCodeHeading.size();
    codes.emplace_back(text.substr(start, text.find('\n', start) - start));
  }
  return codes;
}

}  // namespace fuseline
