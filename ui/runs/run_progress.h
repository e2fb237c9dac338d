// Progress texts of a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

#include <cstdint>

namespace fuseline::ui {

/// A stage as the worker names it, in words of the window. isGpu: the device of the run.
QString stageText(const QString& stage, bool isGpu);

/// "measuring 12/50 · 14 s left": how long it will still take, by what this stage took until now, as soon as that says
/// something. total 0: nobody knows.
QString progressText(const QString& stage, int done, int total, std::int64_t elapsedMs);

/// The longest that progressText() gives, for the room it takes.
QString longestProgressText();

}  // namespace fuseline::ui
