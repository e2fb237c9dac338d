// An event filter of the application.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/quiet_wheel.h"

#include <QAbstractSpinBox>
#include <QComboBox>
#include <QCoreApplication>
#include <QEvent>

namespace fuseline::ui {

namespace {

QWidget* boxOf(QObject* watched) {
  if (auto* combo = qobject_cast<QComboBox*>(watched)) return combo;
  return qobject_cast<QAbstractSpinBox*>(watched);
}

}  // namespace

void QuietWheel::install() {
  const QString name = QStringLiteral("quietWheel");
  if (qApp->findChild<QObject*>(name, Qt::FindDirectChildrenOnly)) return;
  auto* filter = new QuietWheel(qApp);
  filter->setObjectName(name);
  qApp->installEventFilter(filter);
}

bool QuietWheel::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::Wheel && event->type() != QEvent::Polish) return false;
  QWidget* const box = boxOf(watched);
  if (!box) return false;
  if (event->type() == QEvent::Polish) {
    if (box->focusPolicy() == Qt::WheelFocus) box->setFocusPolicy(Qt::StrongFocus);
    return false;
  }
  if (box->hasFocus()) return false;
  event->ignore();  // so that its parent scrolls
  return true;
}

}  // namespace fuseline::ui
