// Questions about host keys are answered with yes or no; everything else is a secret.
// SPDX-License-Identifier: Apache-2.0
#include "ui/machines/ask_pass.h"

#include <QCoreApplication>
#include <QInputDialog>
#include <QMessageBox>
#include <QTextStream>

namespace fuseline::ui {

namespace {

constexpr int kCancelled = 1;

int print(const QString& answer) {
  QTextStream(stdout) << answer << Qt::endl;
  return 0;
}

}  // namespace

int askPass(const QString& prompt) {
  const QString title = QCoreApplication::translate("askPass", "Fuseline: ssh");
  if (prompt.contains(QStringLiteral("(yes/no"))) {
    const auto answer =
        QMessageBox::question(nullptr, title, prompt, QMessageBox::Yes | QMessageBox::No, QMessageBox::No);
    return answer == QMessageBox::Yes ? print(QStringLiteral("yes")) : kCancelled;
  }
  bool isGiven = false;
  const QString answer = QInputDialog::getText(nullptr, title, prompt, QLineEdit::Password, {}, &isGiven);
  return isGiven ? print(answer) : kCancelled;
}

}  // namespace fuseline::ui
