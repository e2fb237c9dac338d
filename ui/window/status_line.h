// StatusLine: below the window: a hint, what is selected, how many problems there are, and the zoom.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"
#include "ui/window/panes.h"

#include <QLabel>
#include <QObject>
#include <QStatusBar>
#include <QToolButton>

#include <functional>

namespace fuseline::ui {

class StatusLine : public QObject {
  Q_OBJECT

 public:
  /// progress: of runs. All of them live as long as the bar does.
  StatusLine(QStatusBar& bar, GraphView& view, Panes& panes, QWidget& progress);

  /// Until the next one, an edit, another selection or a run; empty: none.
  void setHint(const QString& sentence);
  /// For some seconds, over the hint.
  void say(const QString& sentence);

 private:
  QToolButton* addButton(const QString& text, const QString& tip, std::function<void()> run);
  void forgetHint();
  void showNextZoom();
  void showSelected();
  void showDevice();
  void showProblems(int numErrors, int numWarnings);

  QStatusBar& m_bar;
  GraphView& m_view;
  Panes& m_panes;
  QLabel* m_hint;
  QLabel* m_selected;
  QLabel* m_device;
  QToolButton* m_counts = nullptr;
  QToolButton* m_zoom = nullptr;
};

}  // namespace fuseline::ui
