// RecordedNumerics: what the record of a run says of its numbers: two verdicts, and what quantizing lost.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/timings/run_filter.h"

#include <QLabel>
#include <QPushButton>
#include <QStandardItemModel>
#include <QTreeView>
#include <QWidget>

namespace fuseline::ui {

class RecordedNumerics : public QWidget {
  Q_OBJECT

 public:
  enum Column {
    CopyColumn,
    FormatColumn,
    AmaxColumn,
    RangeColumn,
    ScaleColumn,
    UnderflowColumn,
    SaturatedColumn,
    ErrorColumn,
    NoiseColumn,
    ColumnCount
  };
  enum Role { OwnerRole = Qt::UserRole + 1 };  // of a row: the document's op

  RecordedNumerics(Session& session, const Theme& theme, QWidget* parent = nullptr);

  /// Quantized tensors that it keeps are shown, from the next refresh() on.
  void setFilter(const RunFilter& filter) { m_filter = &filter; }
  /// The last run, if it has been looked at; else there is nothing to show.
  bool refresh();
  /// Whose they are, and the verdicts: rich text.
  QString caption() const { return m_caption->text(); }
  const QStandardItemModel& copies() const { return *m_model; }
  QPushButton* measureButton() const { return m_measure; }

 private:
  void createView();
  QString captionText(const LastRun& run) const;
  void fill(const RunNumerics& numerics);

  Session& m_session;
  const RunFilter* m_filter = nullptr;
  const Theme& m_theme;
  QLabel* m_caption;
  QPushButton* m_measure;
  QStandardItemModel* m_model;
  QTreeView* m_view;
  QLabel* m_nothing;
};

}  // namespace fuseline::ui
