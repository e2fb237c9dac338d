// Walks the blocks depth first, without recursion, because files can be hostile.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/block_table.h"

#include "core/document/block_operation.h"
#include "core/document/json_text.h"
#include "core/document/node_id.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

BlockTable::BlockTable(const PipelineDocument& document, DiagnosticSink& sink) : m_sink(sink) {
  m_blocks.reserve(document.blocks().size());
  for (const auto& [name, block] : document.blocks()) {
    if (const Verdict verdict = checkId(name); !verdict)
      sink.error("bad-id", {.pointer = "/blocks/" + escapedPointer(name)},
                 fmt::format("Invalid block name. {}", verdict.reason()));
    if (name.empty()) continue;
    m_byName.emplace(name, m_blocks.size());
    m_blocks.push_back({.name = name, .block = &block, .operation = blockOperation(name, block), .firstUse = {}});
    m_blocks.back().hasPorts = !block.inputs.empty() && !block.outputs.empty();
  }
  for (const Block& block : m_blocks) m_parts.push_back(partsOf(*block.block));
  m_states.resize(m_blocks.size());
  m_places.resize(m_blocks.size());
  m_depths.resize(m_blocks.size());
  for (std::size_t i = 0; i < m_blocks.size(); ++i) visit(i);
  findFirstUses(document);
}

const BlockTable::Block* BlockTable::find(std::string_view name) const {
  const auto found = m_byName.find(name);
  return found == m_byName.end() ? nullptr : &m_blocks[found->second];
}

const BlockTable::Block* BlockTable::blockOf(const DocumentOp& op) const {
  const std::string_view name = blockNameOf(op);
  return name.empty() ? nullptr : find(name);
}

std::vector<std::string> BlockTable::instanceNames() const {
  std::vector<std::string> names;
  for (const Block& block : m_blocks) names.push_back(instanceOf(block.name));
  return names;
}

std::vector<BlockTable::Part> BlockTable::partsOf(const DocumentBlock& block) const {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < block.ops.size(); ++i)
    if (const Block* inner = blockOf(block.ops[i]))
      parts.push_back({i, static_cast<std::size_t>(inner - m_blocks.data())});
  return parts;
}

void BlockTable::visit(std::size_t first) {
  if (m_states[first] != State::New) return;
  std::vector<Visit> open;
  const auto enter = [&](std::size_t block) {
    m_states[block] = State::Open;
    m_places[block] = open.size();
    open.push_back({block});
  };
  enter(first);
  while (!open.empty()) {
    Visit& visit = open.back();
    const std::vector<Part>& parts = m_parts[visit.block];
    if (visit.next == parts.size()) {
      finish(visit.block);
      open.pop_back();
      continue;
    }
    const Part part = parts[visit.next++];
    if (m_states[part.block] == State::Open) reportCycle(open, part);
    if (m_states[part.block] == State::New) enter(part.block);
  }
}

// The blocks inside a block are finished already, unless they form a cycle with it.
void BlockTable::finish(std::size_t index) {
  Block& block = m_blocks[index];
  int depth = 1;
  block.numOps = block.block->ops.size();
  for (const Part& part : m_parts[index]) {
    const Block& inner = m_blocks[part.block];
    block.isExpandable = block.isExpandable && inner.isExpandable && m_states[part.block] == State::Done;
    block.numOps = std::min(block.numOps + inner.numOps, 2 * kMaxOps);
    depth = std::max(depth, m_depths[part.block] + 1);
  }
  m_depths[index] = depth;
  m_states[index] = State::Done;
  if (!block.isExpandable) return;
  if (depth > kMaxNesting)
    refuse(index, "too-deep",
           fmt::format("Blocks are nested {} levels deep in block {}; at most {} levels are expanded. Expand some of "
                       "the inner blocks.",
                       depth, block.name, kMaxNesting));
  else if (block.numOps > kMaxOps)
    refuse(index, "too-many-ops",
           fmt::format("Block {} expands to more than {} ops, the maximum of a pipeline. Use fewer instances.",
                       block.name, kMaxOps));
}

void BlockTable::refuse(std::size_t index, std::string code, const std::string& message) {
  m_blocks[index].isExpandable = false;
  m_sink.error(std::move(code), {.pointer = "/blocks/" + escapedPointer(m_blocks[index].name)}, message);
}

void BlockTable::reportCycle(const std::vector<Visit>& open, const Part& last) {
  constexpr std::size_t kMostNames = 16;  // so that the messages of very many blocks stay linear
  const std::size_t begin = m_places[last.block];
  std::string path;
  for (std::size_t i = begin; i < std::min(open.size(), begin + kMostNames); ++i)
    path += m_blocks[open[i].block].name + " -> ";
  if (open.size() > begin + kMostNames) path += "... -> ";
  const std::string& name = m_blocks[last.block].name;
  const Block& holder = m_blocks[open.back().block];
  const DocumentOp& op = holder.block->ops[last.op];
  m_sink.error(
      "block-cycle", {.pointer = fmt::format("/blocks/{}/ops/{}/op", escapedPointer(holder.name), last.op)},
      fmt::format("Block {0} contains itself: {1}{0}. Remove {2} from block {3}.", name, path, op.id, holder.name));
}

// Breadth first, so that a path is as short as can be; deeper than the limit nothing is expanded.
void BlockTable::findFirstUses(const PipelineDocument& document) {
  std::vector<std::pair<std::size_t, int>> found;  // blocks with their depth
  const auto use = [&](std::size_t block, const BlockScope& outer, const std::string& id, int depth) {
    BlockScope& scope = m_blocks[block].firstUse;
    if (!scope.block.empty() || depth > kMaxNesting) return;
    scope = {.block = m_blocks[block].name,
             .path = outer.block.empty() ? id : outer.path + "." + id,
             .node = outer.block.empty() ? id : outer.node};
    found.emplace_back(block, depth);
  };
  for (const Part& part : partsOf(document.pipeline())) use(part.block, {}, document.ops()[part.op].id, 1);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [block, depth] = found[i];
    for (const Part& part : m_parts[block])
      use(part.block, BlockScope(m_blocks[block].firstUse), m_blocks[block].block->ops[part.op].id, depth + 1);
  }
  for (Block& block : m_blocks) block.firstUse.block = block.name;
}

}  // namespace fuseline
