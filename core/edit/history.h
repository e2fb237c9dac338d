// History: undo and redo as a property of the document, not of the window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/support/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

class History {
 public:
  explicit History(PipelineDocument document = {}) : m_document(std::move(document)) {}

  const PipelineDocument& document() const { return m_document; }

  /// Applies an edit and remembers its inverse. With a non-empty mergeKey equal to the last entry's (a drag, typing
  /// in one field), the two become one entry.
  Result<void> apply(const Edit& edit, const std::string& mergeKey = {});
  bool canUndo() const { return !m_undo.empty(); }
  bool canRedo() const { return !m_redo.empty(); }
  /// The edit that was applied.
  Edit undo();
  Edit redo();
  std::string undoLabel() const;
  std::string redoLabel() const;

  /// All that was done and not overtaken by another edit, undone or not.
  std::size_t size() const { return m_undo.size() + m_redo.size(); }
  /// Number of entries that are done; the others are undone.
  std::size_t depth() const { return m_undo.size(); }
  /// Label of an entry, oldest first: the edit from depth `index` to the next.
  const std::string& label(std::size_t index) const;
  /// Undoes or redoes until `depth` entries are done, by these edits in order. depth: at most size().
  std::vector<Edit> goTo(std::size_t depth);

  /// The state that is on disk; isModified() compares with it.
  void markSaved();
  /// Whatever is on disk is another state.
  void markUnsaved() { m_savedDepth = -1; }
  bool isModified() const;
  /// Depth of the saved state; nullopt if no undo or redo leads there.
  std::optional<std::size_t> savedDepth() const;

 private:
  struct Entry {
    std::string label;
    Edit edit;  // applied by undo (or redo)
    std::string mergeKey;
  };
  PipelineDocument m_document;
  std::vector<Entry> m_undo;
  std::vector<Entry> m_redo;
  long m_savedDepth = 0;  // -1: the saved state cannot be reached any more
};

}  // namespace fuseline
