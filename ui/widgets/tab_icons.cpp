// Tabs are told apart by their titles, which are those of the docks.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/tab_icons.h"

#include "ui/theme/window_style.h"

#include <QCoreApplication>
#include <QDockWidget>
#include <QEvent>
#include <QScopedValueRollback>

namespace fuseline::ui {

namespace {

constexpr int kIconPx = 14;

}  // namespace

TabIcons::TabIcons(QMainWindow& window, const Theme& theme) : QObject(&window), m_window(window), m_theme(theme) {
  connect(&theme, &Theme::changed, this, &TabIcons::renew);
}

void TabIcons::follow(QTabBar& tabs) {
  tabs.setIconSize({kIconPx, kIconPx});
  tabs.installEventFilter(this);
  m_tabBars.append(&tabs);
  connect(&tabs, &QObject::destroyed, this, [this, gone = &tabs] { m_tabBars.removeOne(gone); });
}

void TabIcons::renew() {
  for (QTabBar* tabs : m_tabBars)
    for (int tab = 0; tab < tabs->count(); ++tab) tabs->setTabIcon(tab, {});
  for (QTabBar* tabs : m_tabBars) fill(*tabs);
}

void TabIcons::fill(QTabBar& tabs) const {
  const auto docks = m_window.findChildren<QDockWidget*>(Qt::FindDirectChildrenOnly);
  for (int tab = 0; tab < tabs.count(); ++tab) {
    if (!tabs.tabIcon(tab).isNull()) continue;
    for (const QDockWidget* dock : docks)
      if (dock->windowTitle() == tabs.tabText(tab))
        tabs.setTabIcon(tab, m_theme.icon(QStringLiteral("pane_") + dock->objectName()));
  }
}

/// Nothing else tells that a tab is new.
bool TabIcons::eventFilter(QObject* watched, QEvent* event) {
  const bool isShown = event->type() == QEvent::Show || event->type() == QEvent::Resize ||
                       event->type() == QEvent::LayoutRequest || event->type() == QEvent::Paint;
  if (!isShown || m_isFilling) return false;
  const QScopedValueRollback guard(m_isFilling, true);
  auto& tabs = *static_cast<QTabBar*>(watched);
  fill(tabs);
  if (event->type() != QEvent::Paint) fit(tabs);
  return false;
}

/// The name of a tab that has none is its tip.
void TabIcons::fit(QTabBar& tabs) {
  const bool hasIcons = tabs.property(kIconTabsProperty).toBool();
  int whole = 0;
  for (int tab = 0; tab < tabs.count(); ++tab) {
    whole += tabs.tabRect(tab).width();
    if (hasIcons && tab != tabs.currentIndex())
      whole += tabs.fontMetrics().size(Qt::TextShowMnemonic, tabs.tabText(tab)).width() + kIconTabSavedPx;
  }
  if (const bool isNarrow = whole > tabs.width(); isNarrow != hasIcons) {
    tabs.setProperty(kIconTabsProperty, isNarrow);
    QEvent restyled(QEvent::StyleChange);  // measures its tabs again
    QCoreApplication::sendEvent(&tabs, &restyled);
  }
}

}  // namespace fuseline::ui
