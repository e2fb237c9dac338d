// The bar of messages.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/message_bar.h"

#include "ui/theme/message_ground.h"
#include "ui/widgets/text_dialog.h"

#include <QHBoxLayout>

#include <utility>

namespace fuseline::ui {

namespace {

// Limit for a message; a longer one would push the canvas away.
constexpr qsizetype kMostCharacters = 300;

/// The first line, cut off behind a word where it is long.
QString beginningOf(const QString& text) {
  QString line = text.section(u'\n', 0, 0);
  if (line.size() > kMostCharacters) line.truncate(line.lastIndexOf(u' ', kMostCharacters));
  return line.size() < text.trimmed().size() ? line + QStringLiteral(" …") : line;
}

}  // namespace

MessageBar::MessageBar(const Theme& theme, QWidget* parent)
    : QWidget(parent), m_label(new QLabel(this)), m_offers(new QHBoxLayout), m_details(new QToolButton(this)) {
  m_label->setWordWrap(true);
  m_label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_details->setText(tr("Details"));
  m_details->setToolTip(tr("Show the whole message"));
  auto* close = new QToolButton(this);
  close->setText(tr("Close"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 6, 8, 6);
  row->addWidget(m_label, 1);
  row->addLayout(m_offers);
  for (QToolButton* button : {m_details, close}) {
    button->setAutoRaise(true);
    row->addWidget(button, 0, Qt::AlignTop);
  }
  connect(m_details, &QToolButton::clicked, this, &MessageBar::showDetails);
  connect(close, &QToolButton::clicked, this, &QWidget::hide);
  useMessageGround(*this, theme);
  hide();
}

void MessageBar::setText(const QString& text) {
  m_text = text;
  m_label->setText(beginningOf(text));
  m_details->setVisible(m_label->text() != text.trimmed());
  while (QLayoutItem* const offer = m_offers->takeAt(0)) {
    offer->widget()->hide();
    offer->widget()->deleteLater();  // its action may be what sets the text
    delete offer;
  }
}

void MessageBar::offer(const QString& label, const QString& tip, std::function<void()> action) {
  auto* button = new QToolButton(this);
  button->setText(label);
  button->setAccessibleName(label);
  button->setToolTip(tip);
  m_offers->addWidget(button, 0, Qt::AlignTop);
  connect(button, &QToolButton::clicked, this, [button, action = std::move(action)] {
    button->hide();
    action();
  });
  button->show();
}

void MessageBar::showDetails() { TextDialog(tr("Message"), {}, m_text, this).exec(); }

}  // namespace fuseline::ui
