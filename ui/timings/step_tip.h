// Tooltip of a measured step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <QString>

namespace fuseline::ui {

/// Lines of rich text, a break before each: all rounds, the work by the model's count and what was reached of it in
/// durationNs, how it was done, its kernels, its note.
QString stepLines(const StepRecord& step, double durationNs);

}  // namespace fuseline::ui
