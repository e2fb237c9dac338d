// A window with a text.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/text_dialog.h"

#include "ui/widgets/screen_room.h"

#include <QClipboard>
#include <QDialogButtonBox>
#include <QGuiApplication>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {
constexpr QSize kSize = {620, 480};
}

TextDialog::TextDialog(const QString& title, const QString& introduction, const QString& text, QWidget* parent)
    : QDialog(parent) {
  setWindowTitle(title);
  resizeOnScreen(*this, kSize);
  auto* head = new QLabel(introduction, this);
  head->setWordWrap(true);
  head->setVisible(!introduction.isEmpty());
  auto* details = new QPlainTextEdit(text, this);
  details->setReadOnly(true);
  details->setAccessibleName(tr("Details"));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  const auto* copy = buttons->addButton(tr("Copy details"), QDialogButtonBox::ActionRole);
  connect(copy, &QPushButton::clicked, details, [text] { QGuiApplication::clipboard()->setText(text); });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(head);
  layout->addWidget(details, 1);
  layout->addWidget(buttons);
}

}  // namespace fuseline::ui
