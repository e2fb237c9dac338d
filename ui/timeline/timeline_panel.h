// TimelinePanel: when each pass, step and kernel ran, the unfused plan above the fused one, from one origin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/timeline/hidden_tracks_bar.h"
#include "ui/timeline/timeline_find.h"
#include "ui/timeline/timeline_sums.h"
#include "ui/timeline/timeline_view.h"
#include "ui/timings/run_filter_bar.h"
#include "ui/widgets/tip_card.h"

#include <QLabel>
#include <QScrollArea>
#include <QSplitter>
#include <QToolButton>
#include <QWidget>

namespace fuseline::ui {

class TimelinePanel : public QWidget {
  Q_OBJECT

 public:
  /// isKept: whether how it is arranged is read from the settings and written there.
  TimelinePanel(Session& session, const Theme& theme, bool isKept = false, QWidget* parent = nullptr);
  /// Shows the steps that the filter keeps, with its chips above them. filter outlives the panel.
  void setFilter(RunFilter& filter);
  TimelineView* view() const { return m_view; }
  /// Table of sums over the selected time range.
  TimelineSums& sums() { return *m_sums; }
  TimelineFind& find() { return *m_find; }
  /// Pinned cards, oldest first.
  QList<TipCard*> cards() const;
  QString caption() const { return m_caption->text(); }
  /// Why there is nothing to see; empty where there is.
  QString emptyText() const;

 private:
  void refresh();
  void refreshCaption();
  std::vector<TimelineTrack> shownTracks() const;
  void createHead();
  void createBody();
  void connectTracks();
  void pin(const QString& html, const QString& title, QPoint place);
  void closeCards();
  void connectNotes();
  void refreshNotes();
  void refreshNote();
  void toggleSums();
  void refreshSums();
  void showSums(bool isShown);

  Session& m_session;
  const Theme& m_theme;
  QWidget* m_head;
  QLabel* m_caption;
  QToolButton* m_tracks;
  HiddenTracksBar* m_hidden;
  QLabel* m_empty;
  QScrollArea* m_area;
  TimelineView* m_view;
  TimelineFind* m_find;
  TimelineSums* m_sums;
  QSplitter* m_body;
  RunFilter* m_filter = nullptr;
  bool m_isKept;
  bool m_wantsSums;
  bool m_hasSizes = false;
};

}  // namespace fuseline::ui
