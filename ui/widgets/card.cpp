// One look for all cards.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/card.h"

namespace fuseline::ui {

void makeCardOf(QFrame& frame, const Theme& theme) {
  frame.setObjectName(QStringLiteral("card"));
  frame.setStyleSheet(QStringLiteral("QFrame#card { background: %1; border: 1px solid %2; border-radius: 6px; }")
                          .arg(theme.colors().base.name(), theme.colors().border.name()));
}

QFrame* makeCard(const Theme& theme, QWidget* parent) {
  auto* card = new QFrame(parent);
  makeCardOf(*card, theme);
  auto* layout = new QVBoxLayout(card);
  layout->setContentsMargins(10, 8, 10, 8);
  layout->setSpacing(5);
  return card;
}

QVBoxLayout& layoutOf(QFrame& card) { return *static_cast<QVBoxLayout*>(card.layout()); }

QLabel* makeSentence(const QString& text, QWidget* parent) {
  auto* sentence = new QLabel(text, parent);
  sentence->setWordWrap(true);
  sentence->setMinimumWidth(1);  // a long word is cut off rather than the card
  sentence->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return sentence;
}

}  // namespace fuseline::ui
