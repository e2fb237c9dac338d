// History: undo and redo as a property of the document, not of the window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

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
  void undo();
  void redo();
  std::string undoLabel() const;
  std::string redoLabel() const;

  /// The state that is on disk; isModified() compares with it.
  void markSaved();
  /// Whatever is on disk is another state.
  void markUnsaved() { m_savedDepth = -1; }
  bool isModified() const;

 private:
  struct Entry {
    std::string label;
    Edit edit;  // what undo (or redo) applies
    std::string mergeKey;
  };
  PipelineDocument m_document;
  std::vector<Entry> m_undo;
  std::vector<Entry> m_redo;
  long m_savedDepth = 0;  // -1: the saved state cannot be reached any more
};

}  // namespace fuseline
