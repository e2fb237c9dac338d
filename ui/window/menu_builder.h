// MenuBuilder: adds commands to menus, with keys, and with icons in the colors of the theme.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QAction>
#include <QKeySequence>
#include <QList>
#include <QMenu>
#include <QObject>
#include <QPair>
#include <QString>

#include <functional>

namespace fuseline::ui {

class MenuBuilder : public QObject {
  Q_OBJECT

 public:
  MenuBuilder(const Theme& theme, QObject* parent);

  /// run: lives as long as the command does. icon: a name that the theme knows; empty: none.
  QAction* add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run,
               const QString& icon = {});

 private:
  void refresh();

  const Theme& m_theme;
  QList<QPair<QAction*, QString>> m_icons;
};

}  // namespace fuseline::ui
