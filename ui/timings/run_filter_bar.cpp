// Chips follow the terms.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/run_filter_bar.h"

#include <QHBoxLayout>
#include <QShortcut>

namespace fuseline::ui {

namespace {

constexpr int kFieldPx = 150;

void addChoice(QMenu& menu, RunFilter& filter, const FilterTerm& term) {
  QAction* action = menu.addAction(textOf(term));
  action->setCheckable(true);
  action->setChecked(filter.has(term));
  QObject::connect(action, &QAction::triggered, &filter,
                   [&filter, term](bool isChosen) { isChosen ? filter.add(term) : filter.remove(term); });
}

}  // namespace

RunFilterBar::RunFilterBar(Session& session, RunFilter& filter, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_filter(filter),
      m_button(makeButton(tr("Filter"), tr("Filter steps in Timings, Timeline, Flame, Roofline, Memory and Numerics"))),
      m_back(makeButton(QStringLiteral("‹"), tr("Previous filter (Alt+Left)"))),
      m_forward(makeButton(QStringLiteral("›"), tr("Next filter (Alt+Right)"))),
      m_field(new QLineEdit(this)),
      m_clear(makeButton(tr("Clear"), tr("Remove the filter"))),
      m_row(new QHBoxLayout(this)) {
  setAccessibleName(tr("Filter steps"));
  m_button->setPopupMode(QToolButton::InstantPopup);
  m_button->setMenu(new QMenu(m_button));
  m_field->setPlaceholderText(tr("Name or kernel"));
  m_field->setAccessibleName(tr("Filter by name or kernel"));
  m_field->setMaximumWidth(kFieldPx);
  m_field->setClearButtonEnabled(true);
  m_row->setContentsMargins(10, 0, 10, 4);
  m_row->setSpacing(4);
  for (QWidget* widget : std::initializer_list<QWidget*>{m_back, m_forward, m_field, m_clear}) m_row->addWidget(widget);
  m_row->addStretch(1);
  connect(m_button->menu(), &QMenu::aboutToShow, this, &RunFilterBar::fillMenu);
  connect(m_back, &QToolButton::clicked, &filter, &RunFilter::goBack);
  connect(m_forward, &QToolButton::clicked, &filter, &RunFilter::goForward);
  connect(m_clear, &QToolButton::clicked, &filter, &RunFilter::clear);
  connect(m_field, &QLineEdit::returnPressed, this, [this] {
    m_filter.add({FilterTerm::Kind::Text, m_field->text().trimmed()});
    m_field->clear();
  });
  const auto addKey = [&](Qt::Key key, auto go) {
    auto* shortcut = new QShortcut(QKeySequence(Qt::ALT | key), parent);
    shortcut->setContext(Qt::WidgetWithChildrenShortcut);
    connect(shortcut, &QShortcut::activated, &filter, go);
  };
  addKey(Qt::Key_Left, &RunFilter::goBack);
  addKey(Qt::Key_Right, &RunFilter::goForward);
  connect(&filter, &RunFilter::changed, this, &RunFilterBar::refresh);
  refresh();
}

QToolButton* RunFilterBar::makeButton(const QString& text, const QString& tip) {
  auto* button = new QToolButton(this);
  button->setText(text);
  button->setToolTip(tip);
  button->setAccessibleName(tip);
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::TabFocus);
  return button;
}

void RunFilterBar::fillMenu() {
  QMenu& menu = *m_button->menu();
  menu.clear();
  for (const QString& id : m_session.selection().ids()) addChoice(menu, m_filter, {FilterTerm::Kind::Op, id});
  auto kind = FilterTerm::Kind::Op;
  for (const FilterTerm& term : m_filter.choices()) {
    if (term.kind != kind) menu.addSeparator();
    kind = term.kind;
    addChoice(menu, m_filter, term);
  }
  menu.addSeparator();
  connect(menu.addAction(tr("Name or kernel…")), &QAction::triggered, this, [this] {
    m_isTyping = true;
    refresh();
    m_field->setFocus(Qt::OtherFocusReason);
  });
  QAction* clear = menu.addAction(tr("Remove the filter"));
  clear->setEnabled(m_filter.isActive());
  connect(clear, &QAction::triggered, &m_filter, &RunFilter::clear);
}

/// Old chips go later: one of them may be what was pressed.
void RunFilterBar::refresh() {
  for (QToolButton* chip : m_chips) {
    chip->hide();
    chip->deleteLater();
  }
  m_chips.clear();
  for (const FilterTerm& term : m_filter.terms()) {
    QToolButton* chip = makeButton(textOf(term) + QStringLiteral("  ×"), tr("Remove %1").arg(textOf(term)));
    chip->setAutoRaise(false);
    connect(chip, &QToolButton::clicked, &m_filter, [filter = &m_filter, term] { filter->remove(term); });
    m_row->insertWidget(2 + static_cast<int>(m_chips.size()), chip);
    m_chips.push_back(chip);
  }
  m_back->setEnabled(m_filter.canGoBack());
  m_forward->setEnabled(m_filter.canGoForward());
  m_clear->setEnabled(m_filter.isActive());
  m_button->setText(m_filter.isActive() ? tr("Filter (%1)").arg(m_filter.terms().size()) : tr("Filter"));
  setVisible(m_filter.isActive() || m_filter.canGoForward() || m_filter.canGoBack() || m_isTyping);
}

}  // namespace fuseline::ui
