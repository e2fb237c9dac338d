// Hears of the desktop's colors.
// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/system_palette.h"

#include <QApplication>
#include <QEvent>
#include <QScopedValueRollback>
#include <QStyleHints>

#include <utility>

namespace fuseline::ui {

QPalette readSystemPalette() {
  QApplication::setPalette(QPalette());
  return QApplication::palette();
}

SystemPalette::SystemPalette(Theme& theme, std::function<QPalette()> read) : m_theme(theme), m_read(std::move(read)) {
  qApp->installEventFilter(this);
#if QT_VERSION >= QT_VERSION_CHECK(6, 5, 0)
  connect(QGuiApplication::styleHints(), &QStyleHints::colorSchemeChanged, this, &SystemPalette::follow);
#endif
}

bool SystemPalette::eventFilter(QObject* watched, QEvent* event) {
  const bool isPalette = event->type() == QEvent::ApplicationPaletteChange && watched == qApp;
  const bool isTheme = event->type() == QEvent::ThemeChange && watched->isWindowType();
  if ((isPalette && !m_theme.isApplying()) || isTheme) follow();
  return QObject::eventFilter(watched, event);
}

/// Palettes set here are reported too.
void SystemPalette::follow() {
  if (m_isFollowing) return;
  const QScopedValueRollback guard(m_isFollowing, true);
  m_theme.setSystemPalette(m_read());
}

}  // namespace fuseline::ui
