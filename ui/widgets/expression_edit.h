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
  /// What the document says. Does not disturb what is being typed.
  void setCommitted(const QString& text);
  const QString& committed() const { return m_committed; }
  /// Of a border around what is a problem; an invalid one: it is none.
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

/// What stands in the field with the focus, of a panel, a table or the canvas, and was not confirmed yet counts when
/// the pipeline is saved, left or run.
void commitTypedField();

}  // namespace fuseline::ui
