// Prompts of ssh as a small dialog. Answers go to ssh alone; nothing is kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDialog>
#include <QLineEdit>
#include <QPushButton>
#include <QString>

namespace fuseline::ui {

/// The name under which the program is such a dialog.
inline constexpr const char* kAskPassName = "fuseline-askpass";

/// Asks for a secret, or for a yes where ssh expects yes or no: about an unknown host key, or the use of a key.
class AskPassDialog : public QDialog {
  Q_OBJECT

 public:
  /// prompt: as ssh words it.
  explicit AskPassDialog(const QString& prompt, QWidget* parent = nullptr);

  /// For ssh, once the dialog is accepted.
  QString answer() const;
  /// nullptr: the answer is yes or nothing.
  QLineEdit* secret() const { return m_secret; }
  QPushButton& acceptButton() { return *m_accept; }

 private:
  QLineEdit* m_secret = nullptr;
  QPushButton* m_accept;
};

/// Shows the prompt, prints the answer on standard output and returns the exit code: 1 where the user cancels.
int askPass(const QString& prompt);

}  // namespace fuseline::ui
