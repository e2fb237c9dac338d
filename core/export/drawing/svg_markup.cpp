// Writes numbers, shapes and texts.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/svg_markup.h"

#include <cmath>

#include <fmt/format.h>

namespace fuseline {

std::string px(double value) { return fmt::format("{}", std::round(value * 10.0) / 10.0); }

Html shape(std::string_view tag, const HtmlAttributes& attributes) {
  std::string markup = element(tag, attributes).toString();
  markup.replace(markup.rfind("></"), std::string::npos, "/>");
  return Html::verbatim(std::move(markup));
}

Html rectangle(const DrawnRect& rect, double cornerPx, const HtmlAttributes& more) {
  HtmlAttributes attributes = {{"x", px(rect.topLeft.x)},
                               {"y", px(rect.topLeft.y)},
                               {"width", px(rect.size.width)},
                               {"height", px(rect.size.height)},
                               {"rx", px(cornerPx)}};
  attributes.insert(attributes.end(), more.begin(), more.end());
  return shape("rect", attributes);
}

Html textAt(const DrawnPoint& at, const HtmlAttributes& more, std::string_view text) {
  HtmlAttributes attributes = {{"x", px(at.x)}, {"y", px(at.y)}};
  attributes.insert(attributes.end(), more.begin(), more.end());
  return element("text", attributes, Html::text(text));
}

}  // namespace fuseline
