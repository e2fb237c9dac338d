// Shapes and texts of SVG, short.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/graph_layout.h"
#include "core/export/html.h"

#include <string>
#include <string_view>

namespace fuseline {

/// Rounded to a tenth of a pixel, without trailing zeros, which would be most of a drawing's text.
std::string px(double value);

/// An element without content, which SVG closes at once, in pages, too.
Html shape(std::string_view tag, const HtmlAttributes& attributes);
Html rectangle(const DrawnRect& rect, double cornerPx, const HtmlAttributes& more);
/// at: the start of its baseline, or as text-anchor defines.
Html textAt(const DrawnPoint& at, const HtmlAttributes& more, std::string_view text);

}  // namespace fuseline
