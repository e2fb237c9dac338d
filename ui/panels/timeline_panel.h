// TimelinePanel: when each pass, step and kernel ran, the unfused plan above the fused one, from one origin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/panels/timeline_view.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QLabel>
#include <QScrollArea>
#include <QWidget>

namespace fuseline::ui {

class TimelinePanel : public QWidget {
  Q_OBJECT

 public:
  TimelinePanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  TimelineView* view() const { return m_view; }
  QString caption() const { return m_caption->text(); }
  /// Why there is nothing to see; empty where there is.
  QString emptyText() const;

 private:
  void refresh();
  void refreshCaption();

  Session& m_session;
  const Theme& m_theme;
  QLabel* m_caption;
  QLabel* m_empty;
  QScrollArea* m_area;
  TimelineView* m_view;
};

}  // namespace fuseline::ui
