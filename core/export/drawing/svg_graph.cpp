// Has passes placed, and puts them on one sheet.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/svg_graph.h"

#include "core/export/drawing/palette.h"
#include "core/export/drawing/pass_measures.h"
#include "core/export/drawing/svg_markup.h"
#include "core/export/drawing/svg_pass.h"
#include "core/export/drawing/text_width.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr double kMarginPx = 16.0;
constexpr double kGapPx = 48.0;  // between the passes
constexpr double kLegendPx = 52.0;
constexpr int kNumShades = 32;
constexpr DrawnSize kShade = {5.0, 12.0};

std::size_t numOps(const std::vector<DrawnPass>& passes) {
  std::size_t most = 0;
  for (const DrawnPass& pass : passes)
    most = std::max(most, static_cast<std::size_t>(std::ranges::count_if(pass.boxes, isOp)));
  return most;
}

/// Side by side, on lines with the headings.
struct Sheet {
  std::vector<double> lefts;
  double top = kMarginPx;
  DrawnSize size;
};

Sheet sheetOf(std::span<const GraphLayout> layouts, const std::optional<HeatLegend>& legend) {
  Sheet sheet{.size = {kMarginPx, 0.0}};
  if (legend) sheet.top += kLegendPx;
  for (const GraphLayout& layout : layouts) {
    if (!sheet.lefts.empty()) sheet.size.width += kGapPx;
    sheet.lefts.push_back(sheet.size.width);
    sheet.size.width += std::max(layout.size.width, textWidthPx(phaseHeading(Phase::Backward), kNameFontPx));
    sheet.size.height = std::max(sheet.size.height, layout.size.height);
  }
  if (legend) sheet.size.width = std::max(sheet.size.width, kMarginPx + textWidthPx(legend->caption, kTypeFontPx));
  sheet.size = {std::ceil(sheet.size.width + kMarginPx),
                std::ceil(sheet.top + kHeadingPx + sheet.size.height + kMarginPx)};
  return sheet;
}

Html legendMarkup(const HeatLegend& legend) {
  const double baseline = kMarginPx + kShade.height - 1.5;
  const HtmlAttributes look = {{"class", "figure"}, {"fill", kLightPalette.dimText}, {"font-size", px(kTypeFontPx)}};
  const double left = kMarginPx + 12.0;
  Html shades;
  for (int i = 0; i < kNumShades; ++i) {
    const Rgb color = heatColor((i + 0.5) / kNumShades);
    // A little wider than a step, so that nothing shines through between two.
    shades += shape("rect", {{"x", px(left + i * kShade.width)},
                             {"y", px(kMarginPx)},
                             {"width", px(kShade.width + (i + 1 < kNumShades ? 0.5 : 0.0))},
                             {"height", px(kShade.height)},
                             {"fill", hexOf(color)}});
  }
  const double right = left + kNumShades * kShade.width + 6.0;
  return "\n"_html +
         element("g", {{"class", "legend"}},
                 textAt({kMarginPx, baseline}, look, "0") + shades + textAt({right, baseline}, look, legend.most) +
                     textAt({kMarginPx, kMarginPx + kShade.height + kLinePx}, look, legend.caption));
}

Html head(const SvgOptions& options, const DrawnSize& size) {
  if (options.use == SvgUse::InPage) return {};
  return textElement("title", options.title) + "<desc>A pipeline drawn by Fuseline</desc>\n"_html +
         element("style", Html::verbatim("@media (prefers-color-scheme: dark) {\n" + drawingStyle() + "}\n")) +
         "\n"_html + rectangle({{}, size}, 0.0, {{"class", "paper"}, {"fill", kLightPalette.paper}});
}

HtmlAttributes rootAttributes(const SvgOptions& options, const DrawnSize& size) {
  HtmlAttributes attributes = {{"class", "graph"},
                               {"viewBox", fmt::format("0 0 {} {}", px(size.width), px(size.height))},
                               {"width", px(size.width)},
                               {"height", px(size.height)},
                               {"font-family", "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"},
                               {"fill", kLightPalette.text}};
  if (options.use == SvgUse::File) attributes.insert(attributes.begin(), {"xmlns", "http://www.w3.org/2000/svg"});
  return attributes;
}

std::string rule(std::string_view selector, std::string_view property, const char* color) {
  return fmt::format(".graph{} {{ {}: {}; }}\n", selector, property, color);
}

}  // namespace

std::string opAnchor(Phase phase, NodeId node) {
  return fmt::format("op-{}{}", phase == Phase::Forward ? 'f' : 'b', node);
}

std::string drawingStyle() {
  const DrawingPalette& dark = kDarkPalette;
  std::string style = rule("", "fill", dark.text) + rule(" .paper", "fill", dark.paper) +
                      rule(" .title", "fill", dark.text) + rule(" .type", "fill", dark.dimText) +
                      rule(" .figure", "fill", dark.dimText) + rule(" .label", "fill", dark.dimText) +
                      rule(" .tip", "fill", dark.dimText) + rule(" .wire", "stroke", dark.dimText) +
                      rule(" .box", "stroke", dark.nodeBorder) + rule(" .box:not(.heat)", "fill", dark.node) +
                      rule(" .chip", "fill", dark.paper);
  for (const CategoryTone& tone : kCategoryTones)
    style += rule(fmt::format(" .{}", tone.name), "fill", dark.*tone.color);
  for (const FrameKind kind : {FrameKind::Forward, FrameKind::Backward, FrameKind::Joint, FrameKind::Block}) {
    const FrameLook look = lookOf(kind);
    style += rule(fmt::format(" .{} > .hull", look.name), "stroke", dark.*look.color) +
             rule(fmt::format(" .{} > .hull", look.name), "fill", dark.*look.color) +
             rule(fmt::format(" .{} > .hull-title", look.name), "fill", dark.*look.color);
  }
  return style;
}

Result<Html> svgOf(const std::vector<DrawnPass>& passes, const LayOutGraph& layOut, const SvgOptions& options) {
  if (const std::size_t count = numOps(passes); count > kMostDrawnOps)
    return Error{fmt::format("expected at most {} ops to draw, found {}", kMostDrawnOps, count)};
  std::vector<GraphLayout> layouts;
  for (const DrawnPass& pass : passes) {
    Result<GraphLayout> layout = layOut(layoutProblem(pass));
    if (!layout) return layout.error();
    layouts.push_back(std::move(*layout));
  }
  const Sheet sheet = sheetOf(layouts, options.legend);
  Html content = head(options, sheet.size);
  if (options.legend) content += legendMarkup(*options.legend);
  for (std::size_t i = 0; i < passes.size(); ++i)
    content += "\n"_html + svgPass(passes[i], layouts[i], {sheet.lefts[i], sheet.top});
  return element("svg", rootAttributes(options, sheet.size), content + "\n"_html);
}

}  // namespace fuseline
