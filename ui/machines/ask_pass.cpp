// Questions about host keys are answered with yes or no; everything else is a secret.
// SPDX-License-Identifier: Apache-2.0
#include "ui/machines/ask_pass.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QTextStream>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

constexpr int kCancelled = 1;
constexpr int kPromptWidthPx = 440;

/// ssh-agent says with a variable that it asks for a yes, not for a secret.
bool isQuestion(const QString& prompt) {
  return prompt.contains(QStringLiteral("(yes/no")) ||
         qEnvironmentVariable("SSH_ASKPASS_PROMPT") == QStringLiteral("confirm");
}

/// The buttons stand for the words that ssh would have typed.
QString withoutTypedWords(QString prompt) {
  const qsizetype words = prompt.indexOf(QStringLiteral(" (yes/no"));
  return words < 0 ? prompt : prompt.first(words) + u'?';
}

QLabel* makeLabel(const QString& text) {
  auto* label = new QLabel(text);
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->setMinimumWidth(kPromptWidthPx);
  return label;
}

}  // namespace

AskPassDialog::AskPassDialog(const QString& prompt, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("ssh"));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  auto* rows = new QVBoxLayout(this);
  rows->setSizeConstraint(QLayout::SetFixedSize);
  rows->setSpacing(10);
  rows->addWidget(makeLabel(withoutTypedWords(prompt.trimmed())));
  if (isQuestion(prompt)) {
    m_accept = buttons->addButton(tr("Yes"), QDialogButtonBox::AcceptRole);
    buttons->button(QDialogButtonBox::Cancel)->setDefault(true);
    buttons->button(QDialogButtonBox::Cancel)->setFocus();
  } else {
    m_secret = new QLineEdit(this);
    m_secret->setEchoMode(QLineEdit::Password);
    m_secret->setAccessibleName(prompt.trimmed());
    rows->addWidget(m_secret);
    rows->addWidget(makeLabel(tr("Fuseline passes the answer to ssh and does not store it.")));
    m_accept = buttons->addButton(QDialogButtonBox::Ok);
    m_accept->setDefault(true);
  }
  rows->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
}

QString AskPassDialog::answer() const { return m_secret ? m_secret->text() : QStringLiteral("yes"); }

int askPass(const QString& prompt) {
  AskPassDialog dialog(prompt);
  if (dialog.exec() != QDialog::Accepted) return kCancelled;
  QTextStream(stdout) << dialog.answer() << Qt::endl;
  return 0;
}

}  // namespace fuseline::ui
