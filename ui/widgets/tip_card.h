// TipCard: a tooltip that stays until it is closed, and can be moved and copied.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QFrame>
#include <QLabel>
#include <QPoint>

#include <optional>

namespace fuseline::ui {

/// Over its parent, which it does not leave. The mouse or, where it has the keyboard, arrow keys move it; Ctrl+C copies
/// what is marked or all of it, Escape closes it.
class TipCard : public QFrame {
  Q_OBJECT

 public:
  /// html: of a tooltip. title: of what it speaks, for screen readers.
  TipCard(const QString& html, const QString& title, const Theme& theme, QWidget& parent);

  /// As near to a place of the parent as it fits.
  void moveTo(QPoint place);
  /// As plain lines.
  QString text() const;
  void copy() const;

 protected:
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void follow(const Theme& theme);

  QLabel* m_label;
  std::optional<QPoint> m_grip;  // where it is held
};

}  // namespace fuseline::ui
