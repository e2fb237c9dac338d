// FrameEditor: the title of a frame, or the text of a note, typed in its place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QPlainTextEdit>

namespace fuseline::ui {

enum class FrameText { Title, Note };

/// Enter confirms a title, Ctrl+Enter a note; losing the focus confirms both. Esc cancels.
/// Deletes itself then.
class FrameEditor : public QPlainTextEdit {
  Q_OBJECT

 public:
  FrameEditor(FrameText kind, const QString& text, QWidget* parent);
  /// Ends without a word.
  void close();
  /// Ends with what was typed.
  void commit();

 Q_SIGNALS:
  void committed(const QString& text);
  /// Either way. It may still have the keyboard.
  void ended();

 protected:
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  FrameText m_kind;
  bool m_isOpen = true;
};

}  // namespace fuseline::ui
