// Cards over a view.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/tip_card.h"

#include "ui/widgets/view_events.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QTextDocumentFragment>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kStepPx = 10;
constexpr int kWidestCardPx = 460;

bool isOwnKey(int key) {
  return key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Up || key == Qt::Key_Down ||
         key == Qt::Key_Escape;
}

}  // namespace

TipCard::TipCard(const QString& html, const QString& title, const Theme& theme, QWidget& parent)
    : QFrame(&parent), m_label(new QLabel(html, this)) {
  setFocusPolicy(Qt::StrongFocus);
  setFrameStyle(static_cast<int>(QFrame::Box) | static_cast<int>(QFrame::Plain));  // in the color of its text
  setAutoFillBackground(true);
  setAccessibleName(tr("Pinned: %1").arg(title));
  setAccessibleDescription(text());
  setCursor(Qt::SizeAllCursor);
  setMaximumWidth(kWidestCardPx);
  m_label->setTextFormat(Qt::RichText);
  m_label->setWordWrap(true);
  m_label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_label->setCursor(Qt::IBeamCursor);
  auto* buttons = new QHBoxLayout();
  buttons->addStretch(1);
  const auto add = [&](const QString& text, const QString& name, auto run) {
    auto* button = new QToolButton(this);
    button->setText(text);
    button->setAccessibleName(name);
    button->setAutoRaise(true);
    button->setCursor(Qt::ArrowCursor);
    connect(button, &QToolButton::clicked, this, run);
    buttons->addWidget(button);
  };
  add(tr("Copy"), tr("Copy the details of %1").arg(title), [this] { copy(); });
  add(tr("Close"), tr("Close the details of %1").arg(title), [this] { deleteLater(); });
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(10, 8, 6, 4);
  layout->setSpacing(2);
  layout->addWidget(m_label);
  layout->addLayout(buttons);
  follow(theme);
  connect(&theme, &Theme::changed, this, [this, &theme] { follow(theme); });
}

void TipCard::follow(const Theme& theme) {
  QPalette colors = palette();
  colors.setColor(QPalette::Window, theme.colors().panel);
  colors.setColor(QPalette::WindowText, theme.colors().text);
  setPalette(colors);
}

void TipCard::moveTo(QPoint place) {
  adjustSize();
  const QSize room = parentWidget()->size() - size();
  move(std::clamp(place.x(), 0, std::max(0, room.width())), std::clamp(place.y(), 0, std::max(0, room.height())));
}

QString TipCard::text() const { return QTextDocumentFragment::fromHtml(m_label->text()).toPlainText(); }

void TipCard::copy() const {
  QGuiApplication::clipboard()->setText(m_label->hasSelectedText() ? m_label->selectedText() : text());
}

void TipCard::mousePressEvent(QMouseEvent* event) {
  raise();
  if (event->button() == Qt::LeftButton) m_grip = event->position().toPoint();
}

void TipCard::mouseMoveEvent(QMouseEvent* event) {
  if (m_grip) moveTo(mapToParent(event->position().toPoint()) - *m_grip);
}

void TipCard::mouseReleaseEvent(QMouseEvent*) { m_grip.reset(); }

void TipCard::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy)) return copy();
  switch (event->key()) {
    case Qt::Key_Left: return moveTo(pos() - QPoint(kStepPx, 0));
    case Qt::Key_Right: return moveTo(pos() + QPoint(kStepPx, 0));
    case Qt::Key_Up: return moveTo(pos() - QPoint(0, kStepPx));
    case Qt::Key_Down: return moveTo(pos() + QPoint(0, kStepPx));
    case Qt::Key_Escape: return deleteLater();
    default: QFrame::keyPressEvent(event);
  }
}

/// Keys of a card are not the window's.
bool TipCard::event(QEvent* event) {
  takeOwnKey(*event, Qt::KeypadModifier, isOwnKey);
  if (event->type() == QEvent::ShortcutOverride && static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy))
    event->accept();
  return QFrame::event(event);
}

}  // namespace fuseline::ui
