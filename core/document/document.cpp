// Lookups on a document.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/document.h"

#include <algorithm>
#include <cctype>

namespace fuseline {

namespace {

template <class Item>
const Item* findById(const std::vector<Item>& items, std::string_view id) {
  const auto found = std::ranges::find_if(items, [&](const Item& item) { return item.id == id; });
  return found == items.end() ? nullptr : &*found;
}

}  // namespace

const DocumentOp* PipelineDocument::findOp(std::string_view id) const { return findById(m_pipeline.ops, id); }

const DocumentInput* PipelineDocument::findInput(std::string_view id) const { return findById(m_pipeline.inputs, id); }

const DocumentOutput* PipelineDocument::findOutput(std::string_view id) const {
  return findById(m_pipeline.outputs, id);
}

const DocumentBlock* PipelineDocument::findBlock(std::string_view name) const {
  const auto found = std::ranges::find_if(m_blocks, [&](const auto& entry) { return entry.first == name; });
  return found == m_blocks.end() ? nullptr : &found->second;
}

const DocumentFrame* PipelineDocument::findFrame(std::string_view id) const { return findById(m_pipeline.frames, id); }

DocumentBlock* PipelineDocument::mutableBlock(std::string_view name) {
  return const_cast<DocumentBlock*>(findBlock(name));
}

bool PipelineDocument::idExists(std::string_view id) const { return findOp(id) || findInput(id) || findOutput(id); }

std::string PipelineDocument::freeId(std::string_view stem) const { return fuseline::freeId(m_pipeline, stem); }

std::string PipelineDocument::freeFrameId(std::string_view stem) const {
  std::unordered_set<std::string> taken;
  for (const DocumentFrame& frame : frames()) taken.insert(frame.id);
  return fuseline::freeId(taken, stem);
}

namespace {

bool hasSameLists(const DocumentBlock& a, const DocumentBlock& b) {
  return a.inputs == b.inputs && a.ops == b.ops && a.wires == b.wires && a.outputs == b.outputs;
}

}  // namespace

bool meansTheSame(const PipelineDocument& a, const PipelineDocument& b) {
  const auto isSameBlock = [](const auto& one, const auto& other) {
    return one.first == other.first && hasSameLists(one.second, other.second);
  };
  return hasSameLists(a.pipeline(), b.pipeline()) && std::ranges::equal(a.blocks(), b.blocks(), isSameBlock) &&
         a.symbols() == b.symbols() && a.recipe() == b.recipe() && a.fusion() == b.fusion();
}

std::string freeId(const DocumentBlock& block, std::string_view stem) {
  std::unordered_set<std::string> taken;
  for (const DocumentInput& input : block.inputs) taken.insert(input.id);
  for (const DocumentOp& op : block.ops) taken.insert(op.id);
  for (const DocumentOutput& output : block.outputs) taken.insert(output.id);
  return freeId(taken, stem);
}

std::string freeId(const std::unordered_set<std::string>& taken, std::string_view stem) {
  if (!stem.empty() && !taken.contains(std::string(stem))) return std::string(stem);
  while (!stem.empty() && std::isdigit(static_cast<unsigned char>(stem.back()))) stem.remove_suffix(1);
  const std::string base(stem.empty() ? "op" : stem);
  for (int number = 2;; ++number) {
    std::string id = base + std::to_string(number);
    if (!taken.contains(id)) return id;
  }
}

std::vector<const DocumentFrame*> drawnFrames(const PipelineDocument& document) {
  std::vector<const DocumentFrame*> frames;
  std::unordered_set<std::string_view> ids;
  for (const DocumentFrame& frame : document.frames())
    if (ids.insert(frame.id).second && frame.area && !frame.id.empty()) frames.push_back(&frame);
  return frames;
}

}  // namespace fuseline
