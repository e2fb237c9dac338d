// Undo and redo by inverse edits, and merging of edits that belong together.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/history.h"

#include "core/edit/apply_edit.h"

#include <algorithm>
#include <cassert>
#include <set>

namespace fuseline {

namespace {

// Names the one value that an edit overwrites as a whole; nullopt for an edit that adds, removes or renames.
struct Target {
  std::optional<std::string> operator()(const SetAttribute& edit) const { return "a" + edit.id + "." + edit.name; }
  std::optional<std::string> operator()(const SetBypassed& edit) const { return "b" + edit.id; }
  std::optional<std::string> operator()(const MoveNode& edit) const { return "m" + edit.id; }
  std::optional<std::string> operator()(const ReplaceFrame& edit) const { return "f" + edit.frame.id; }
  std::optional<std::string> operator()(const SetSymbol& edit) const { return "s" + edit.name; }
  std::optional<std::string> operator()(const SetRecipe&) const { return "recipe"; }
  std::optional<std::string> operator()(const SetFusion&) const { return "fusion"; }
  std::optional<std::string> operator()(const ReplaceInput& edit) const {
    return edit.id == edit.input.id ? std::optional("i" + edit.id) : std::nullopt;
  }
  std::optional<std::string> operator()(const ReplaceOutput& edit) const {
    return edit.id == edit.output.id ? std::optional("o" + edit.id) : std::nullopt;
  }
  template <class Other>
  std::optional<std::string> operator()(const Other&) const {
    return std::nullopt;
  }
};

// Does the edit replace an existing value? Removals shift later members.
struct IsOverwrite {
  bool operator()(const SetAttribute& edit) const { return !edit.value.is_null(); }
  bool operator()(const SetSymbol& edit) const { return !edit.value.is_null(); }
  bool operator()(const MoveNode& edit) const { return edit.position.has_value(); }
  template <class Other>
  bool operator()(const Other&) const {
    return true;
  }
};

void collectTargets(const Edit& edit, std::set<std::string>& targets) {
  if (const auto* group = std::get_if<EditGroup>(&edit)) {
    for (const Edit& part : group->edits) collectTargets(part, targets);
  } else if (const auto target = std::visit(Target{}, edit)) {
    targets.insert(*target);
  }
}

bool isCoveredBy(const Edit& edit, const std::set<std::string>& targets) {
  if (const auto* group = std::get_if<EditGroup>(&edit))
    return std::ranges::all_of(group->edits, [&](const Edit& part) { return isCoveredBy(part, targets); });
  const auto target = std::visit(Target{}, edit);
  return target && targets.contains(*target) && std::visit(IsOverwrite{}, edit);
}

// Inverse of both edits: the newer inverse first, unless the older one overwrites everything it would restore.
Edit joinInverses(Edit newer, Edit older, const std::string& label) {
  std::set<std::string> targets;
  collectTargets(older, targets);
  if (isCoveredBy(newer, targets)) return older;
  return EditGroup{label, {std::move(newer), std::move(older)}};
}

}  // namespace

Result<void> History::apply(const Edit& edit, const std::string& mergeKey) {
  Result<Edit> inverse = applyEdit(m_document, edit);
  if (!inverse) return inverse.error();
  const auto depth = static_cast<long>(m_undo.size());
  const bool isMerged = !mergeKey.empty() && m_redo.empty() && !m_undo.empty() && m_undo.back().mergeKey == mergeKey &&
                        m_savedDepth != depth;
  if (m_savedDepth > depth) m_savedDepth = -1;
  m_redo.clear();
  if (isMerged) {
    Entry& last = m_undo.back();
    last.edit = joinInverses(std::move(*inverse), std::move(last.edit), last.label);
  } else {
    m_undo.push_back({.label = describe(edit), .edit = std::move(*inverse), .mergeKey = mergeKey});
  }
  return {};
}

Edit History::undo() {
  assert(canUndo());
  Entry entry = std::move(m_undo.back());
  m_undo.pop_back();
  Result<Edit> redo = applyEdit(m_document, entry.edit);
  assert(redo && "an inverse must apply");
  m_redo.push_back({.label = std::move(entry.label), .edit = std::move(*redo), .mergeKey = {}});
  return std::move(entry.edit);
}

Edit History::redo() {
  assert(canRedo());
  Entry entry = std::move(m_redo.back());
  m_redo.pop_back();
  Result<Edit> undo = applyEdit(m_document, entry.edit);
  assert(undo && "an inverse must apply");
  m_undo.push_back({.label = std::move(entry.label), .edit = std::move(*undo), .mergeKey = {}});
  return std::move(entry.edit);
}

std::string History::undoLabel() const { return canUndo() ? m_undo.back().label : std::string(); }

std::string History::redoLabel() const { return canRedo() ? m_redo.back().label : std::string(); }

const std::string& History::label(std::size_t index) const {
  return index < m_undo.size() ? m_undo[index].label : m_redo[size() - 1 - index].label;
}

std::vector<Edit> History::goTo(std::size_t depth) {
  assert(depth <= size());
  std::vector<Edit> applied;
  while (this->depth() > depth) applied.push_back(undo());
  while (this->depth() < depth) applied.push_back(redo());
  return applied;
}

void History::markSaved() { m_savedDepth = static_cast<long>(m_undo.size()); }

std::optional<std::size_t> History::savedDepth() const {
  return m_savedDepth < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(m_savedDepth));
}

bool History::isModified() const { return m_savedDepth != static_cast<long>(m_undo.size()); }

}  // namespace fuseline
