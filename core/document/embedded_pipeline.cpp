// Writes and finds a pipeline file in comments.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/embedded_pipeline.h"

#include "core/document/file_format.h"

#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::string_view kBegin = "fuseline pipeline begins";
constexpr std::string_view kEnd = "fuseline pipeline ends";

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    if (lines.back().ends_with('\r')) lines.back().remove_suffix(1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Error notFound() {
  return {
      fmt::format("expected the lines \"{}\" and \"{}\", one each, with a pipeline file in comments between them; "
                  "`fuseline export FILE.fuseline --to te` writes such a file.",
                  kBegin, kEnd)};
}

}  // namespace

std::string embedded(const PipelineDocument& document, std::string_view prefix) {
  std::string text = fmt::format("{}{}\n", prefix, kBegin);
  const std::string file = serialize(document);
  for (const std::string_view line : linesOf(file)) text += fmt::format("{}{}\n", prefix, line);
  return text + fmt::format("{}{}\n", prefix, kEnd);
}

bool holdsEmbedded(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool isJson = first != std::string_view::npos && text[first] == '{';
  return !isJson && text.find(kBegin) != std::string_view::npos;
}

Result<std::string> embeddedText(std::string_view text) {
  std::size_t prefix = std::string_view::npos;
  std::string found;
  bool isComplete = false;
  for (const std::string_view line : linesOf(text)) {
    const bool isInside = prefix != std::string_view::npos && !isComplete;
    if (line.ends_with(kBegin)) {
      if (prefix != std::string_view::npos) return notFound();
      prefix = line.size() - kBegin.size();
    } else if (line.ends_with(kEnd)) {
      if (!isInside) return notFound();
      isComplete = true;
    } else if (isInside) {
      found += fmt::format("{}\n", line.substr(std::min(prefix, line.size())));
    }
  }
  return isComplete ? Result<std::string>(std::move(found)) : notFound();
}

}  // namespace fuseline
