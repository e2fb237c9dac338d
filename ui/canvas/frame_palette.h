// The named colors of frames, in both themes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QString>

#include <string_view>

namespace fuseline::ui {

/// Color of a frame's edge; its background is the same color, translucent. Gray for a name that is not in kFrameColors.
QColor frameColor(const Theme& theme, std::string_view name);
/// The canvas with a breath of the color: texts of the theme reach 4.5:1 on both.
QColor frameGround(const Theme& theme, std::string_view name);
QColor headerGround(const Theme& theme, std::string_view name);
/// "Blue"; "Gray" for a name that is none of kFrameColors.
QString frameColorTitle(std::string_view name);

}  // namespace fuseline::ui
