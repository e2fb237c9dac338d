// SystemPalette: keeps the theme in step with the desktop, whose colors may change while the program runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QObject>
#include <QPalette>

#include <functional>

namespace fuseline::ui {

/// Reads the palette of the desktop, not of this program. Leaves the application without a palette of its own.
QPalette readSystemPalette();

class SystemPalette : public QObject {
  Q_OBJECT

 public:
  explicit SystemPalette(Theme& theme, std::function<QPalette()> read = readSystemPalette);

 protected:
  /// Filters events of the application (palette changes) and of its windows (theme changes).
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void follow();

  Theme& m_theme;
  std::function<QPalette()> m_read;
  bool m_isFollowing = false;
};

}  // namespace fuseline::ui
