// Keys and tooltips of views.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/view_events.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QToolTip>

namespace fuseline::ui {

void takeOwnKey(QEvent& event, Qt::KeyboardModifiers modifiers, const std::function<bool(int key)>& isOwn) {
  if (event.type() != QEvent::ShortcutOverride) return;
  const auto& key = static_cast<const QKeyEvent&>(event);
  if ((key.modifiers() & ~modifiers) == 0 && isOwn(key.key())) event.accept();
}

bool answerToolTip(QEvent& event, QWidget& view, const std::function<QString(QPoint)>& tipAt) {
  if (event.type() != QEvent::ToolTip) return false;
  const auto& help = static_cast<const QHelpEvent&>(event);
  const QString tip = tipAt(help.pos());
  tip.isEmpty() ? QToolTip::hideText() : QToolTip::showText(help.globalPos(), tip, &view);
  return true;
}

}  // namespace fuseline::ui
