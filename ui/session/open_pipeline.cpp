// Edits in, signals out.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/open_pipeline.h"

#include "core/document/file_format.h"
#include "core/edit/canonical_order.h"
#include "core/support/json.h"
#include "ui/session/last_edits.h"
#include "ui/theme/format.h"

#include <QFileInfo>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

/// Those that reading what is saved would find.
std::vector<Diagnostic> problemsWhenSaved(const PipelineDocument& document) {
  return readDocument(toJson(document)).diagnostics;
}

/// Parts with errors are written back unchanged; otherwise the error would disappear on saving.
bool losesWhenSaved(const std::vector<Diagnostic>& problems, const PipelineDocument& document) {
  const auto numErrors = [](const std::vector<Diagnostic>& all) {
    return std::ranges::count(all, Severity::Error, &Diagnostic::severity);
  };
  return hasErrors(problems) && numErrors(problemsWhenSaved(document)) < numErrors(problems);
}

}  // namespace

bool OpenPipeline::apply(const Edit& edit, const QString& mergeKey) {
  if (document().isReadOnly()) {
    Q_EMIT editRefused(tr(
        "This file was written by a newer version of Fuseline. You can view and run it. Update Fuseline to edit it."));
    return false;
  }
  const Result<void> applied = m_history.apply(edit, mergeKey.toStdString());
  if (!applied) {
    Q_EMIT editRefused(toQt(applied.error().message));
    return false;
  }
  LastEdits::set(*this, std::vector<Edit>{edit});
  Q_EMIT changed();
  return true;
}

void OpenPipeline::undo() {
  if (m_history.canUndo()) goTo(m_history.depth() - 1);
}

void OpenPipeline::redo() {
  if (m_history.canRedo()) goTo(m_history.depth() + 1);
}

void OpenPipeline::goTo(std::size_t depth) {
  if (depth == m_history.depth() || depth > m_history.size()) return;
  LastEdits::set(*this, m_history.goTo(depth));
  Q_EMIT changed();
}

Result<void> OpenPipeline::save(const QString& path) {
  Result<void> saved = saveDocument(documentToSave(m_history), path.toStdString());
  if (!saved) return saved;
  m_path = QFileInfo(path).absoluteFilePath();
  m_history.markSaved();
  m_isPartlyRead = false;
  const bool hadProblems = !m_problems.empty();
  if (hadProblems) m_problems = problemsWhenSaved(document());
  LastEdits::set(*this, hadProblems ? LastEdits::Edits() : std::vector<Edit>());
  Q_EMIT changed();
  return saved;
}

void OpenPipeline::markUnsaved() {
  m_history.markUnsaved();
  LastEdits::set(*this, std::vector<Edit>());
  Q_EMIT changed();
}

QString OpenPipeline::displayName() const {
  if (!m_path.isEmpty()) return QFileInfo(m_path).fileName();
  return m_name.isEmpty() ? tr("Untitled") : m_name;
}

void OpenPipeline::take(ReadPipeline read) {
  m_history = History(std::move(read.document));
  LastEdits::set(*this, std::nullopt);
  read.isUnsaved ? m_history.markUnsaved() : m_history.markSaved();
  m_problems = std::move(read.problems);
  m_isPartlyRead = read.isPartlyRead || losesWhenSaved(m_problems, document());
  m_notes = toQt(read.notes);
  m_path = read.path;
  m_name = read.name;
}

}  // namespace fuseline::ui
