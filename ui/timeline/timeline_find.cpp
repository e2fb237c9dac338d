// The field above the timeline.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_find.h"

#include "ui/timeline/timeline_search.h"
#include "ui/timeline/timeline_view.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QToolButton>

#include <optional>

namespace fuseline::ui {

namespace {

constexpr int kFieldPx = 260;

enum class FindKey { Next, Previous, SelectAll, Close };

std::optional<FindKey> findKeyOf(const QKeyEvent& key) {
  if (key.matches(QKeySequence::Find)) return FindKey::SelectAll;
  const bool isBack = key.modifiers().testFlag(Qt::ShiftModifier);
  switch (key.key()) {
    case Qt::Key_Escape: return FindKey::Close;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_F3: return isBack ? FindKey::Previous : FindKey::Next;
    default: return std::nullopt;
  }
}

}  // namespace

TimelineFind::TimelineFind(TimelineView& view, QWidget* parent)
    : QWidget(parent), m_view(view), m_field(new QLineEdit(this)), m_count(new QLabel(this)) {
  m_field->setPlaceholderText(tr("Find boxes"));
  m_field->setToolTip(tr("Step, kernel, op or category. Enter: next match"));
  m_field->setAccessibleName(tr("Find boxes in the timeline"));
  m_field->setMaximumWidth(kFieldPx);
  m_field->installEventFilter(this);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(10, 0, 8, 4);
  row->addWidget(m_field);
  const auto add = [&](const QString& text, const QString& name, auto run) {
    auto* button = new QToolButton(this);
    button->setText(text);
    button->setToolTip(name);
    button->setAccessibleName(name);
    button->setAutoRaise(true);
    connect(button, &QToolButton::clicked, this, run);
    row->addWidget(button);
  };
  add(QStringLiteral("‹"), tr("Previous match"), [this] { step(-1); });
  add(QStringLiteral("›"), tr("Next match"), [this] { step(1); });
  row->addWidget(m_count);
  row->addStretch(1);
  add(tr("Close"), tr("Close the search"), [this] { close(); });
  connect(m_field, &QLineEdit::textChanged, this, &TimelineFind::search);
  connect(&view, &TimelineView::arrangementChanged, this, &TimelineFind::refreshMatches);
  connect(&view, &TimelineView::tracksChanged, this, &TimelineFind::refreshMatches);
  hide();
}

void TimelineFind::open() {
  show();
  m_field->setFocus(Qt::ShortcutFocusReason);
  m_field->selectAll();
  refreshMatches();
}

void TimelineFind::close() {
  hide();
  m_matches.clear();
  m_view.setMatches({});
  m_view.setFocus(Qt::ShortcutFocusReason);
}

/// The first match is gone to while one types.
void TimelineFind::search() {
  m_current = 0;
  refreshMatches();
  if (!m_matches.empty()) m_view.goTo(m_matches.front());
}

void TimelineFind::refreshMatches() {
  if (isHidden()) return;
  m_matches = findBoxes(m_view.tracks(), m_field->text());
  if (m_current >= m_matches.size()) m_current = 0;
  m_view.setMatches(m_matches);
  refreshCount();
}

void TimelineFind::refreshCount() {
  if (m_field->text().trimmed().isEmpty()) return m_count->clear();
  m_count->setText(m_matches.empty() ? tr("none") : tr("%1 of %2").arg(m_current + 1).arg(m_matches.size()));
}

void TimelineFind::step(int by) {
  if (m_matches.empty()) return;
  const auto count = static_cast<int>(m_matches.size());
  m_current = static_cast<std::size_t>((static_cast<int>(m_current) + by % count + count) % count);
  m_view.goTo(m_matches[m_current]);
  refreshCount();
}

/// Its keys are not the window's.
bool TimelineFind::eventFilter(QObject* watched, QEvent* event) {
  const bool isPress = event->type() == QEvent::KeyPress;
  if (!isPress && event->type() != QEvent::ShortcutOverride) return QWidget::eventFilter(watched, event);
  const std::optional<FindKey> key = findKeyOf(static_cast<QKeyEvent&>(*event));
  if (!key) return false;
  event->accept();
  if (!isPress) return true;
  switch (*key) {
    case FindKey::Next: step(1); break;
    case FindKey::Previous: step(-1); break;
    case FindKey::SelectAll: m_field->selectAll(); break;
    case FindKey::Close: close(); break;
  }
  return true;
}

}  // namespace fuseline::ui
