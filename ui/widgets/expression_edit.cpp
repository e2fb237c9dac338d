// The editor of numbers and expressions.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/expression_edit.h"

#include "ui/widgets/undo_keys.h"

#include <QApplication>
#include <QKeyEvent>
#include <QPainter>
#include <QPlainTextEdit>
#include <QPointer>

namespace fuseline::ui {

namespace {

constexpr double kProblemBorderPx = 1.6;

}  // namespace

ExpressionEdit::ExpressionEdit(QWidget* parent) : QLineEdit(parent) {
  connect(this, &QLineEdit::editingFinished, this, &ExpressionEdit::commit);
  shareUndoKeys(*this, [this] { return text() != m_committed; });
}

void ExpressionEdit::setCommitted(const QString& text) {
  const bool isBeingTyped = hasFocus() && isModified() && this->text() != m_committed;
  m_committed = text;
  if (isBeingTyped || this->text() == text) return;
  setText(text);
  setCursorPosition(0);
}

void ExpressionEdit::setProblemColor(const QColor& color) {
  m_problemColor = color;
  update();
}

void ExpressionEdit::commit() {
  const QString wanted = text().trimmed();
  const bool isNew = wanted != m_committed;
  m_committed = wanted;
  if (isNew || text() != wanted) forgetTyping();
  if (isNew) Q_EMIT committedText(wanted);
}

/// From here on typing is undone back to what is committed, not to what was before it.
void ExpressionEdit::forgetTyping() {
  const int cursor = cursorPosition();
  setText(m_committed);
  setCursorPosition(cursor);
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

void ExpressionEdit::paintEvent(QPaintEvent* event) {
  QLineEdit::paintEvent(event);
  if (!isProblem()) return;
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(m_problemColor, kProblemBorderPx));
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 2, 2);
}

void commitTypedField() {
  const QPointer<QWidget> field = QApplication::focusWidget();
  if (!qobject_cast<QLineEdit*>(field) && !qobject_cast<QPlainTextEdit*>(field)) return;
  field->clearFocus();
  if (field && field->isVisible()) field->setFocus();  // the editor of a note, or of a cell, is gone now
}

}  // namespace fuseline::ui
