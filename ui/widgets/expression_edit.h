// ExpressionEdit: a line for a number or an expression. Enter commits, Esc reverts, arrow keys step a number. Undo keys
// are about what is being typed, and about the pipeline as soon as it is committed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QColor>
#include <QLineEdit>

namespace fuseline::ui {

class ExpressionEdit : public QLineEdit {
  Q_OBJECT

 public:
  explicit ExpressionEdit(QWidget* parent = nullptr);
  /// Sets the document's text. Does not disturb typing.
  void setCommitted(const QString& text);
  const QString& committed() const { return m_committed; }
  /// Sets the color of the problem border; invalid: no border.
  void setProblemColor(const QColor& color);
  bool isProblem() const { return m_problemColor.isValid(); }

 Q_SIGNALS:
  /// The user has finished and the text differs from what the document says.
  void committedText(const QString& text);

 protected:
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  void commit();
  void forgetTyping();
  bool step(int by);
  QString m_committed;
  QColor m_problemColor;
};

/// Commits unconfirmed text of the focused field, in a pane, a table or on the canvas, before
/// the pipeline is saved, closed or run.
void commitTypedField();

}  // namespace fuseline::ui
