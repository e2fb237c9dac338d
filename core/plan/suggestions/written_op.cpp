// Paths of nodes to ops of sections.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/written_op.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

std::string WrittenOp::text() const { return block.empty() ? id : fmt::format("{} of block {}", id, block); }

Edit WrittenOp::inPlace(Edit edit) const {
  if (block.empty()) return edit;
  if (auto* group = std::get_if<EditGroup>(&edit)) return EditInBlock{block, std::move(group->edits)};
  return EditInBlock{block, {std::move(edit)}};
}

std::string WrittenOp::cautionWith(const std::string& sentences) const {
  if (block.empty()) return sentences;
  return fmt::format("In every instance of block {}.{}{}", block, sentences.empty() ? "" : " ", sentences);
}

std::optional<WrittenOp> ownerOp(const PipelineDocument& document, const Node& node) {
  const std::size_t end = node.path.rfind('.');
  WrittenOp op{.section = node.block.empty() ? &document.pipeline() : document.findBlock(node.block),
               .block = node.block,
               .instance = node.block.empty() ? "" : node.path.substr(0, end),
               .id = node.block.empty() ? node.path : node.path.substr(end + 1)};
  if (!op.section || std::ranges::count(op.section->ops, op.id, &DocumentOp::id) == 0) return std::nullopt;
  return op;
}

std::optional<WrittenOp> writtenOp(const PipelineDocument& document, const Node& node) {
  return node.id == node.path ? ownerOp(document, node) : std::nullopt;
}

}  // namespace fuseline
