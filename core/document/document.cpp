// Lookups on a document, and the entrance to edits.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/document.h"

#include "core/document/edit_applier.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>

namespace fuseline {

namespace {

template <class Item>
const Item* findById(const std::vector<Item>& items, std::string_view id) {
  const auto found = std::ranges::find_if(items, [&](const Item& item) { return item.id == id; });
  return found == items.end() ? nullptr : &*found;
}

}  // namespace

const DocumentOp* PipelineDocument::findOp(std::string_view id) const { return findById(m_ops, id); }

const DocumentInput* PipelineDocument::findInput(std::string_view id) const { return findById(m_inputs, id); }

const DocumentOutput* PipelineDocument::findOutput(std::string_view id) const { return findById(m_outputs, id); }

bool PipelineDocument::idExists(std::string_view id) const { return findOp(id) || findInput(id) || findOutput(id); }

std::string PipelineDocument::freeId(std::string_view stem) const {
  std::unordered_set<std::string_view> taken;
  for (const DocumentInput& input : m_inputs) taken.insert(input.id);
  for (const DocumentOp& op : m_ops) taken.insert(op.id);
  for (const DocumentOutput& output : m_outputs) taken.insert(output.id);
  if (!stem.empty() && !taken.contains(stem)) return std::string(stem);
  while (!stem.empty() && std::isdigit(static_cast<unsigned char>(stem.back()))) stem.remove_suffix(1);
  const std::string base(stem.empty() ? "op" : stem);
  for (int number = 2;; ++number) {
    std::string id = base + std::to_string(number);
    if (!taken.contains(id)) return id;
  }
}

Result<Edit> PipelineDocument::apply(const Edit& edit) {
  if (m_isReadOnly)
    return Error{"This pipeline was written in a newer major version of the format; it can be looked at, not edited."};
  return EditApplier(*this).apply(edit);
}

}  // namespace fuseline
