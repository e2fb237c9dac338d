// Percentages in texts that people type.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace fuseline {

/// "+5%", "0.5%", "-3%". Nothing: it is no finite number with a percent sign.
std::optional<double> parsePercent(std::string_view text);

}  // namespace fuseline
