// The length of tooltips.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/widgets/translated.h"

#include <QString>

namespace fuseline::ui {

/// Longer tooltips hide what they explain.
constexpr qsizetype kMostTipLines = 6;

/// The first lines of a tooltip, whose lines are separated by "<br>" or, in plain text, by line breaks. In place of
/// further ones stands `rest` with their number. Empty lines are left out.
QString cappedTip(const QString& tip, const QString& rest = translated("and %1 more"));

}  // namespace fuseline::ui
