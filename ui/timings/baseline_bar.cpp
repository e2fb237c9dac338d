// The bar of pinned runs.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/baseline_bar.h"

#include "ui/session/baselines.h"
#include "ui/theme/baseline_colors.h"
#include "ui/theme/format.h"

#include <QApplication>
#include <QLabel>
#include <QSettings>

#include <array>

namespace fuseline::ui {

namespace {

constexpr int kMarkPx = 16;
constexpr int kWidestPx = 180;  // of a name
constexpr auto kUnitKey = "timings/changeUnit";

QString tipOf(const Baseline& baseline, bool isReference) {
  const RunRecord& run = *baseline.record;
  QStringList lines = {BaselineBar::tr("Baseline %1: %2").arg(baseline.letter(), baseline.name),
                       BaselineBar::tr("%1 on %2, measured %3")
                           .arg(toQt(run.title()), toQt(run.deviceName()), zonedTimeOf(run.fact("measured at")))};
  if (!baseline.file.isEmpty()) lines.append(baseline.file);
  lines.append(isReference ? BaselineBar::tr("The summary and the rounds show differences from this baseline")
                           : BaselineBar::tr("Click to compare with this baseline"));
  return lines.join(u'\n');
}

}  // namespace

BaselineBar::BaselineBar(Baselines& baselines, const Theme& theme, bool isKept, QWidget* parent)
    : QWidget(parent),
      m_baselines(baselines),
      m_theme(theme),
      m_row(new QHBoxLayout(this)),
      m_unit(new QComboBox(this)) {
  setAccessibleName(tr("Baselines"));
  auto* label = new QLabel(tr("Difference in"), this);
  label->setBuddy(m_unit);
  createUnits(isKept);
  m_row->setContentsMargins(10, 0, 10, 6);
  m_row->setSpacing(2);
  m_row->addStretch(1);
  m_row->addWidget(label);
  m_row->addSpacing(4);
  m_row->addWidget(m_unit);
  connect(&baselines, &Baselines::changed, this, &BaselineBar::refresh);
  connect(&theme, &Theme::changed, this, &BaselineBar::refresh);
  refresh();
}

void BaselineBar::createUnits(bool isKept) {
  m_unit->addItem(tr("%"), static_cast<int>(ChangeUnit::Percent));
  m_unit->addItem(tr("time"), static_cast<int>(ChangeUnit::Amount));
  m_unit->addItem(tr("ratio"), static_cast<int>(ChangeUnit::Ratio));
  m_unit->setAccessibleName(tr("Unit of the differences"));
  m_unit->setToolTip(tr("Percent of the baseline, time difference, or ratio current / baseline"));
  if (isKept) m_unit->setCurrentIndex(std::max(0, m_unit->findData(QSettings().value(kUnitKey).toInt())));
  connect(m_unit, &QComboBox::currentIndexChanged, this, [this, isKept] {
    if (isKept) QSettings().setValue(kUnitKey, m_unit->currentData());
    Q_EMIT unitChosen();
  });
}

ChangeUnit BaselineBar::unit() const { return static_cast<ChangeUnit>(m_unit->currentData().toInt()); }

/// Old chips go later: one of them may be what was pressed. Who is there with the keyboard stays in the bar.
void BaselineBar::refresh() {
  const bool hasFocus = isAncestorOf(QApplication::focusWidget()) && !m_unit->hasFocus();
  for (const Chip& chip : m_chips)
    for (QToolButton* button : {chip.run, chip.unpin}) {
      button->hide();
      button->deleteLater();
    }
  m_chips.clear();
  for (const Baseline& baseline : m_baselines.all()) m_chips.push_back(makeChip(baseline));
  int place = 0;
  for (const Chip& chip : m_chips)
    for (QToolButton* button : {chip.run, chip.unpin}) m_row->insertWidget(place++, button);
  setVisible(!m_chips.empty());
  const Baseline* reference = m_baselines.reference();
  for (const Chip& chip : m_chips)
    if (hasFocus && chip.slot == reference->slot) chip.run->setFocus();
}

BaselineBar::Chip BaselineBar::makeChip(const Baseline& baseline) {
  const Chip chip{baseline.slot, new QToolButton(this), new QToolButton(this)};
  const bool isReference = baseline.slot == m_baselines.reference()->slot;
  chip.run->setIcon(baselineMark(m_theme, baseline.slot, kMarkPx));
  chip.run->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  chip.run->setText(fontMetrics().elidedText(baseline.name, Qt::ElideMiddle, kWidestPx));
  chip.run->setToolTip(tipOf(baseline, isReference));
  chip.run->setAccessibleName(tr("Baseline %1: %2").arg(baseline.letter(), baseline.name));
  chip.run->setFont(scaledFont(1.0, isReference ? QFont::Bold : QFont::Normal));
  chip.run->setAutoRaise(true);
  chip.run->setCheckable(true);
  chip.run->setChecked(isReference);
  chip.unpin->setText(QStringLiteral("×"));
  chip.unpin->setAutoRaise(true);
  chip.unpin->setToolTip(tr("Unpin %1: %2").arg(baseline.letter(), baseline.name));
  chip.unpin->setAccessibleName(chip.unpin->toolTip());
  for (QToolButton* button : {chip.run, chip.unpin}) button->setFocusPolicy(Qt::TabFocus);
  // One is always pressed.
  connect(chip.run, &QToolButton::clicked, this, [this, chip] {
    chip.run->setChecked(true);
    m_baselines.setReference(chip.slot);
  });
  connect(chip.unpin, &QToolButton::clicked, this, [this, chip] { m_baselines.unpin(chip.slot); });
  return chip;
}

}  // namespace fuseline::ui
