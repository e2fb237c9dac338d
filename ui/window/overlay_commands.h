// OverlayCommands: the choice of what nodes show of the last run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/heat_overlay.h"

#include <QActionGroup>
#include <QMenu>
#include <QObject>

namespace fuseline::ui {

class OverlayCommands : public QObject {
  Q_OBJECT

 public:
  /// The overlay lives as long as this.
  OverlayCommands(HeatOverlay& overlay, QObject* parent);

  /// Adds a submenu; O chooses the next one while the canvas has the keyboard.
  void addMenu(QMenu& viewMenu, QWidget& canvas);

 Q_SIGNALS:
  /// A sentence for the status line.
  void hint(const QString& sentence);

 private:
  void add(QMenu& menu, const QString& text, HeatMode mode);
  void refresh();

  HeatOverlay& m_overlay;
  QActionGroup* m_modes;
};

}  // namespace fuseline::ui
