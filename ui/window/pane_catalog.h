// The panes around the canvas, a row each. A pane is added by adding a row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/pipeline_comparison.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/timings/run_filter.h"
#include "ui/window/persistence.h"

#include <QKeySequence>
#include <QString>
#include <QWidget>

#include <vector>

namespace fuseline::ui {

/// Objects that panes need; all outlive them.
struct PaneNeeds {
  Session& session;
  PipelineComparison& comparison;
  const Theme& theme;
  Persistence persistence;
  RunFilter& filter;
};

struct PaneRow {
  QString id;  // of the command line and of saved layouts
  QString title;
  Qt::DockWidgetArea area;
  QWidget* (*make)(const PaneNeeds& needs);
  QKeySequence keys = {};  // of the command that goes there
};

/// In the order of the menu View. Those below the canvas begin with the plan and the timings; the rest are tabs beside
/// the timings.
std::vector<PaneRow> paneCatalog();

}  // namespace fuseline::ui
