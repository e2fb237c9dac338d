// Measured examples: run files that come with the program, each with a line that says what it measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <QString>
#include <QStringList>

#include <vector>

namespace fuseline::ui {

struct MeasuredExample {
  QString path;
  /// Where there is little room: "llama-mlp · MXFP8BlockScaling · 1.43×", with the facts that tell it from the others.
  QString line;
  /// "llama-mlp · NVIDIA H200 · train · MXFP8BlockScaling · M = 8192 · 1.43×"; of a damaged file its name.
  QString text;
  QString problem;  // why it cannot be opened, as a sentence; empty: it can
};

/// "M = 8192, H = 4096": in place of the pipeline's own; mostly empty.
QString symbolsText(const RunSpec& settings);

/// The line about a run: all of it is the record's own.
QString summaryOf(const RunRecord& record);

/// Every "*.fuserun" of the folders, by name. Folders that do not exist have none.
std::vector<MeasuredExample> measuredExamples(const QStringList& folders);

}  // namespace fuseline::ui
