// TimelineSums: sums over the selected time range, below the timeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_sums_model.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/table_columns.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QToolButton>
#include <QTreeView>
#include <QWidget>

#include <optional>
#include <vector>

namespace fuseline::ui {

/// The current row is the selected op; Ctrl+C copies the table.
class TimelineSums : public QWidget {
  Q_OBJECT

 public:
  /// isKept: whether columns and the choice are read from the settings and written there.
  TimelineSums(Session& session, const Theme& theme, bool isKept, QWidget* parent = nullptr);

  /// nullopt: shows how to select a time range.
  void setArea(const std::vector<TimelineTrack>& tracks, const std::optional<TimelineArea>& area);
  /// Sets the note on the time range.
  void setNote(const QString& note);
  QLineEdit* noteField() const { return m_note; }
  SumsBy by() const { return static_cast<SumsBy>(m_by->currentIndex()); }
  QString caption() const { return m_caption->text(); }
  QTreeView* view() const { return m_view; }
  const TimelineSumsModel& model() const { return *m_model; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 Q_SIGNALS:
  void closeWanted();
  /// Something else shall be said of the area; empty: nothing.
  void noteWanted(const QString& note);
  /// The field is done with.
  void noteFinished();

 private:
  QHBoxLayout* makeHead();
  void createView();
  void refresh();
  void takeNote();
  void takeCurrent(const QModelIndex& current);

  Session& m_session;
  const Theme& m_theme;
  std::vector<TimelineTrack> m_tracks;
  std::optional<TimelineArea> m_area;
  ElidedLabel* m_caption;
  QLineEdit* m_note;
  QComboBox* m_by;
  QToolButton* m_close;
  TimelineSumsModel* m_model;
  QTreeView* m_view;
  TableColumns m_columns;
  QString m_shownNote;
  bool m_isKept;
};

}  // namespace fuseline::ui
