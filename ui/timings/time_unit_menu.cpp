// Automatic, or one of four units.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/time_unit_menu.h"

#include "ui/timings/timings_columns.h"

#include <QSettings>

#include <array>
#include <cstddef>

namespace fuseline::ui {

namespace {

constexpr auto kTimeUnitKey = "timings/timeUnit";
constexpr std::array kTimeUnits = {ColumnUnit{"ns", 1.0}, ColumnUnit{"us", 1e3}, ColumnUnit{"ms", 1e6},
                                   ColumnUnit{"s", 1e9}};

}  // namespace

TimeUnitMenu::TimeUnitMenu(bool isKept, QWidget* parent)
    : QMenu(tr("Time &unit"), parent), m_choices(new QActionGroup(this)) {
  m_choices->addAction(tr("&Automatic"));
  for (const ColumnUnit& unit : kTimeUnits) m_choices->addAction(unitText(unit));
  const auto choices = m_choices->actions();
  for (QAction* choice : choices) choice->setCheckable(true);
  const auto kept = isKept ? QSettings().value(QString::fromLatin1(kTimeUnitKey), 0).toLongLong() : 0;
  choices[kept >= 0 && kept < choices.size() ? kept : 0]->setChecked(true);
  addActions(choices);
  connect(m_choices, &QActionGroup::triggered, this, [this, isKept](QAction* choice) {
    if (isKept) QSettings().setValue(QString::fromLatin1(kTimeUnitKey), m_choices->actions().indexOf(choice));
    Q_EMIT unitChanged();
  });
}

std::optional<ColumnUnit> TimeUnitMenu::unit() const {
  const auto chosen = static_cast<std::size_t>(m_choices->actions().indexOf(m_choices->checkedAction()));
  return chosen == 0 ? std::nullopt : std::optional(kTimeUnits[chosen - 1]);
}

}  // namespace fuseline::ui
