// Says when a run is not of what is shown.
// SPDX-License-Identifier: Apache-2.0
#include "ui/models/run_notes.h"

#include "ui/theme/format.h"

#include <QCoreApplication>

namespace fuseline::ui {

namespace {

QString translated(const char* text) { return QCoreApplication::translate("RunNotes", text); }

}  // namespace

QString staleText(const LastRun& run) {
  if (run.isStale) return translated("the pipeline has changed since: run again");
  const qsizetype numDiffering = run.origin ? run.origin->differingSteps.size() : 0;
  if (numDiffering == 0) return {};
  return translated("the plan shown is not the one measured: %1")
      .arg(counted(numDiffering, translated("step differs"), translated("steps differ")));
}

}  // namespace fuseline::ui
