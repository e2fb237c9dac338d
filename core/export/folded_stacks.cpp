// Writes time trees as lines.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/folded_stacks.h"

#include "core/profile/time_tree.h"
#include "core/profile/timeline.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// The format parts frames at semicolons, and lines at their ends.
std::string frameName(std::string name) {
  std::ranges::replace(name, ';', ',');
  std::ranges::replace_if(
      name, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return name;
}

/// Sum of the node's measured children.
double innerNs(const TimeNode& node) {
  double ns = 0.0;
  for (const TimeNode& child : node.children)
    if (!child.isEstimate) ns += child.ns;
  return ns;
}

void write(const TimeNode& node, const std::string& above, std::string& text) {
  if (node.isEstimate) return;
  const std::string stack = above + frameName(node.name);
  if (const auto own = std::llround(node.ns - innerNs(node)); own > 0) text += fmt::format("{} {}\n", stack, own);
  for (const TimeNode& child : node.children) write(child, stack + ";", text);
}

}  // namespace

Result<std::string> foldedStacks(const RunRecord& record) {
  std::string text;
  for (const VariantRecord& variant : record.variants) write(timeTree(record, variant), "", text);
  if (text.empty())
    return Error{
        fmt::format("{}: folded stacks need step times, but this run has none: {}. Measure again: `fuseline run "
                    "PIPELINE -o RUN.fuserun`.",
                    record.title(), whyNoTimeline(record))};
  return text;
}

}  // namespace fuseline
