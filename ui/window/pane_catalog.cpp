// Each pane with its title, its place and its factory.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/pane_catalog.h"

#include "ui/changes/changes_panel.h"
#include "ui/changes/history_panel.h"
#include "ui/flame/flame_panel.h"
#include "ui/fusions/fusions_panel.h"
#include "ui/fusions/plan_panel.h"
#include "ui/fusions/rules_panel.h"
#include "ui/fusions/suggestions_panel.h"
#include "ui/inspector/inspector_panel.h"
#include "ui/library/palette_panel.h"
#include "ui/memory/memory_panel.h"
#include "ui/numerics/numerics_panel.h"
#include "ui/numerics/tensor_panel.h"
#include "ui/outline/outline_panel.h"
#include "ui/problems/problems_panel.h"
#include "ui/roofline/roofline_panel.h"
#include "ui/runs/runs_panel.h"
#include "ui/sweep/sweep_panel.h"
#include "ui/timeline/timeline_panel.h"
#include "ui/timings/timings_panel.h"
#include "ui/widgets/translated.h"
#include "ui/window/log_panel.h"

namespace fuseline::ui {

namespace {

template <typename Panel>
QWidget* make(const PaneNeeds& needs) {
  return new Panel(needs.session, needs.theme);
}

/// A pane that shows what a filter keeps of a run.
template <typename Panel>
QWidget* makeMeasuring(const PaneNeeds& needs) {
  auto* panel = new Panel(needs.session, needs.theme);
  panel->setFilter(needs.filter);
  return panel;
}

/// The same, with choices that are kept in the user's settings.
template <typename Panel>
QWidget* makeKeptMeasuring(const PaneNeeds& needs) {
  auto* panel = new Panel(needs.session, needs.theme, needs.persistence == Persistence::Settings);
  panel->setFilter(needs.filter);
  return panel;
}

QWidget* makePalette(const PaneNeeds& needs) {
  return new PalettePanel(needs.theme, needs.persistence == Persistence::Settings);
}

QWidget* makeChanges(const PaneNeeds& needs) { return new ChangesPanel(needs.session, needs.comparison, needs.theme); }

}  // namespace

std::vector<PaneRow> paneCatalog() {
  constexpr auto kLeft = Qt::LeftDockWidgetArea;
  constexpr auto kRight = Qt::RightDockWidgetArea;
  constexpr auto kBottom = Qt::BottomDockWidgetArea;
  return {
      {QStringLiteral("palette"), translated("Palette"), kLeft, makePalette},
      {QStringLiteral("inspector"), translated("Inspector"), kRight, make<InspectorPanel>},
      {QStringLiteral("whyNot"), translated("Fusions"), kRight, make<FusionsPanel>},
      {QStringLiteral("suggestions"), translated("Suggestions"), kRight, make<SuggestionsPanel>},
      {QStringLiteral("plan"), translated("Plan"), kBottom, make<PlanPanel>},
      {QStringLiteral("timings"), translated("Timings"), kBottom, makeKeptMeasuring<TimingsPanel>},
      {QStringLiteral("timeline"), translated("Timeline"), kBottom, makeKeptMeasuring<TimelinePanel>},
      {QStringLiteral("flame"), translated("Flame"), kBottom, makeMeasuring<FlamePanel>},
      {QStringLiteral("roofline"), translated("Roofline"), kBottom, makeMeasuring<RooflinePanel>},
      {QStringLiteral("memory"), translated("Memory"), kBottom, makeMeasuring<MemoryPanel>},
      {QStringLiteral("numerics"), translated("Numerics"), kBottom, makeMeasuring<NumericsPanel>},
      {QStringLiteral("tensor"), translated("Tensor"), kBottom, make<TensorPanel>},
      {QStringLiteral("sweep"), translated("Sweep"), kBottom, make<SweepPanel>},
      {QStringLiteral("runs"), translated("Runs"), kBottom, make<RunsPanel>},
      {QStringLiteral("changes"), translated("Changes"), kBottom, makeChanges},
      {QStringLiteral("rules"), translated("Rules"), kBottom, make<RulesPanel>},
      {QStringLiteral("problems"), translated("Problems"), kBottom, make<ProblemsPanel>},
      {QStringLiteral("outline"), translated("Outline"), kBottom, make<OutlinePanel>,
       QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O)},
      {QStringLiteral("log"), translated("Log"), kBottom, make<LogPanel>},
      {QStringLiteral("history"), translated("History"), kBottom, make<HistoryPanel>,
       QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_Z)},
  };
}

}  // namespace fuseline::ui
