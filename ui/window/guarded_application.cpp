// Qt itself lets no exception out of an event.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/guarded_application.h"

#include <QMessageBox>
#include <QScopedValueRollback>

#include <exception>

namespace fuseline::ui {

bool GuardedApplication::notify(QObject* receiver, QEvent* event) {
  try {
    return QApplication::notify(receiver, event);
  } catch (const std::exception& problem) {
    tell(problem.what());
  } catch (...) {
    tell("an unknown error");
  }
  return true;
}

void GuardedApplication::tell(const char* problem) {
  if (m_isTelling) return;
  const QScopedValueRollback<bool> telling(m_isTelling, true);
  const QString sentence =
      tr("Internal error in the last action: %1. The pipeline is still open. Save it, then try again.")
          .arg(QString::fromUtf8(problem));
  if (m_report) return m_report(sentence);
  QMessageBox::critical(activeWindow(), tr("Internal error"), sentence);
}

}  // namespace fuseline::ui
