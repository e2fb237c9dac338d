// Prompts of ssh as a small dialog. Answers go to ssh alone; nothing is kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

namespace fuseline::ui {

/// The name under which the program is such a dialog.
inline constexpr const char* kAskPassName = "fuseline-askpass";

/// Shows the prompt, prints the answer on standard output and returns the exit code: 1 where the user cancels.
int askPass(const QString& prompt);

}  // namespace fuseline::ui
