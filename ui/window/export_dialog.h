// The pipeline in the formats of other programs: what would be written, to be read, copied or saved.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "ui/session/exports.h"

#include <QDialog>

#include <functional>

class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace fuseline::ui {

class ExportDialog : public QDialog {
  Q_OBJECT

 public:
  /// The work of an export in a format, for another thread.
  using Write = std::function<TextWork(const PipelineExporter&)>;
  /// path: of the pipeline file, or where one would be saved; the exported file stands beside it.
  ExportDialog(Write write, QString path, QWidget* parent);

 private:
  void createRows();
  const PipelineExporter& exporter() const;
  void refresh();
  void present(const PipelineText& text);
  void copy();
  void save();
  Result<void> writeTo(const QString& path);

  Write m_write;
  QString m_path;
  PipelineText m_exported;
  QComboBox* m_formats;
  QLabel* m_notes;
  QPlainTextEdit* m_text;
  QPushButton* m_copy;
  QPushButton* m_save;
};

}  // namespace fuseline::ui
