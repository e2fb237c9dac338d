// TimelinePanel: when each pass, step and kernel ran, the unfused plan above the fused one, from one origin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/panels/timeline_sums.h"
#include "ui/panels/timeline_view.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QLabel>
#include <QScrollArea>
#include <QSplitter>
#include <QWidget>

namespace fuseline::ui {

class TimelinePanel : public QWidget {
  Q_OBJECT

 public:
  /// isKept: whether how it is arranged is read from the settings and written there.
  TimelinePanel(Session& session, const Theme& theme, bool isKept = false, QWidget* parent = nullptr);
  TimelineView* view() const { return m_view; }
  /// What the area of the view adds up to.
  TimelineSums& sums() { return *m_sums; }
  QString caption() const { return m_caption->text(); }
  /// Why there is nothing to see; empty where there is.
  QString emptyText() const;

 private:
  void refresh();
  void refreshCaption();
  void createBody();
  void toggleSums();
  void showSums(bool isShown);

  Session& m_session;
  const Theme& m_theme;
  QLabel* m_caption;
  QLabel* m_empty;
  QScrollArea* m_area;
  TimelineView* m_view;
  TimelineSums* m_sums;
  QSplitter* m_body;
  bool m_isKept;
  bool m_wantsSums;
};

}  // namespace fuseline::ui
