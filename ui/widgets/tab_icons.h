// TabIcons: an icon before the name of each pane, where panes share a place as tabs; where there is no room for all
// names, only the current tab has one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QMainWindow>
#include <QObject>
#include <QTabBar>

namespace fuseline::ui {

/// The icons are in resources/icons, by the id of the pane: "pane_timings.svg".
class TabIcons : public QObject {
  Q_OBJECT

 public:
  TabIcons(QMainWindow& window, const Theme& theme);
  /// Qt makes tab bars, and tabs in them, as panes come together.
  void follow(QTabBar& tabs);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void renew();
  void fill(QTabBar& tabs) const;
  static void fit(QTabBar& tabs);

  QMainWindow& m_window;
  const Theme& m_theme;
  QList<QTabBar*> m_tabBars;
  bool m_isFilling = false;
};

}  // namespace fuseline::ui
