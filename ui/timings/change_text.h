// How a quantity has changed against a baseline, as tables write it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/comparison_text.h"
#include "core/profile/run_comparison.h"

#include <QString>

#include <optional>

namespace fuseline::ui {

/// Unit of a change: percent of the base, amount in the column's unit (bytes in their own), or ratio new / base.
enum class ChangeUnit { Percent, Amount, Ratio };

/// "▼ -5.0 %", "▲ +0.123", "▼ 0.950×"; "~ +0.4 %" if not statistically significant; "same", "new" or "gone". Arrows
/// tell which way it went.
QString changeText(const MetricChange& change, ChangeUnit unit, const ColumnUnit& time);
/// Sort key of a change; nullopt if one of the runs does not have it.
std::optional<double> changeValue(const MetricChange& change, ChangeUnit unit);
/// 0 within the noise, up to 1 for a factor of two and more.
double changeStrength(const MetricChange& change);
/// "-5.0 % (95 % interval -6.1 % to -4.2 %)"; without the interval where nothing scatters.
QString changeInterval(const MetricChange& change);

}  // namespace fuseline::ui
