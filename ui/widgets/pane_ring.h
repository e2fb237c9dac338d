// PaneRing: the outline of the pane that a key moved the keyboard to, until the keyboard leaves it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QWidget>

namespace fuseline::ui {

class PaneRing : public QWidget {
  Q_OBJECT

 public:
  explicit PaneRing(const Theme& theme, QWidget* parent);
  /// The pane must live as long as the ring.
  void showAround(QWidget& pane);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  void follow(const QWidget* focus);
  const Theme& m_theme;
  QWidget* m_pane = nullptr;
};

/// The widget in a pane that should get the keyboard: the first that Tab reaches, or the pane itself when there is
/// none.
QWidget& firstInPane(QWidget& pane);

/// Puts content that was made later behind `before` in the order of Tab; else it would stand at the window's end.
void joinTabOrder(QWidget& before, QWidget& content);

}  // namespace fuseline::ui
