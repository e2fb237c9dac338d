// The editor of numbers and expressions.
// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/expression_edit.h"

#include <QKeyEvent>

namespace fuseline::ui {

ExpressionEdit::ExpressionEdit(QWidget* parent) : QLineEdit(parent) {
  connect(this, &QLineEdit::editingFinished, this, &ExpressionEdit::commit);
}

void ExpressionEdit::setCommitted(const QString& text) {
  const bool isBeingTyped = hasFocus() && isModified() && this->text() != m_committed;
  m_committed = text;
  if (isBeingTyped || this->text() == text) return;
  setText(text);
  setCursorPosition(0);
}

void ExpressionEdit::commit() {
  const QString wanted = text().trimmed();
  if (wanted == m_committed) return;
  m_committed = wanted;
  Q_EMIT committedText(wanted);
}

bool ExpressionEdit::step(int by) {
  bool isNumber = false;
  const qlonglong value = text().toLongLong(&isNumber);
  if (!isNumber) return false;
  setText(QString::number(value + by));
  commit();
  return true;
}

bool ExpressionEdit::event(QEvent* event) {
  // While something is being typed Esc belongs to the field and not to the window.
  const bool isEscape = event->type() == QEvent::ShortcutOverride &&
                        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape && text() != m_committed;
  if (isEscape) event->accept();
  return isEscape || QLineEdit::event(event);
}

void ExpressionEdit::keyPressEvent(QKeyEvent* event) {
  const int by = event->modifiers() & Qt::ControlModifier ? 10 : 1;
  if (event->key() == Qt::Key_Up && step(by)) return;
  if (event->key() == Qt::Key_Down && step(-by)) return;
  if (event->key() == Qt::Key_Escape && text() != m_committed) {
    setText(m_committed);
    return;
  }
  QLineEdit::keyPressEvent(event);
}

}  // namespace fuseline::ui
