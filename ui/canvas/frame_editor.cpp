// A text field for as long as it has the keyboard.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/frame_editor.h"

#include <QKeyEvent>

#include <utility>

namespace fuseline::ui {

namespace {

/// In the middle of a header.
constexpr double kTitleMarginPx = 7.0;

bool isEnter(const QKeyEvent& event) { return event.key() == Qt::Key_Return || event.key() == Qt::Key_Enter; }

}  // namespace

FrameEditor::FrameEditor(FrameText kind, const QString& text, QWidget* parent) : QPlainTextEdit(parent), m_kind(kind) {
  const bool isTitle = kind == FrameText::Title;
  setAccessibleName(isTitle ? tr("Title of the frame") : tr("Text of the note"));
  setToolTip(isTitle ? tr("Enter: confirm; Esc: cancel") : tr("Ctrl+Enter: confirm; Esc: cancel"));
  setLineWrapMode(isTitle ? NoWrap : WidgetWidth);
  setTabChangesFocus(true);
  if (isTitle) document()->setDocumentMargin(kTitleMarginPx);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  if (isTitle) setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setPlainText(text);
  selectAll();
}

void FrameEditor::close() {
  if (!std::exchange(m_isOpen, false)) return;
  Q_EMIT ended();
  hide();
  deleteLater();
}

void FrameEditor::commit() {
  if (!m_isOpen) return;
  const QString text = toPlainText();
  close();
  Q_EMIT committed(text);
}

/// Esc and Enter are commands of the window, too.
bool FrameEditor::event(QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    const auto& key = *static_cast<QKeyEvent*>(event);
    if (key.key() == Qt::Key_Escape || isEnter(key)) {
      event->accept();
      return true;
    }
  }
  return QPlainTextEdit::event(event);
}

void FrameEditor::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) return close();
  const bool ends = m_kind == FrameText::Title || (event->modifiers() & Qt::ControlModifier);
  if (isEnter(*event) && ends) return commit();
  QPlainTextEdit::keyPressEvent(event);
}

void FrameEditor::focusOutEvent(QFocusEvent* event) {
  QPlainTextEdit::focusOutEvent(event);
  if (event->reason() != Qt::PopupFocusReason) commit();
}

}  // namespace fuseline::ui
