// Draws frames, wires and boxes where the layout has put them.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/svg_pass.h"

#include "core/export/drawing/pass_measures.h"
#include "core/export/drawing/svg_graph.h"
#include "core/export/drawing/svg_markup.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr double kCornerPx = 6.0;
constexpr double kTipHalfWidthPx = 3.5;

/// One pass at its place.
class PassWriter {
 public:
  PassWriter(const DrawnPass& pass, const GraphLayout& layout, DrawnPoint origin)
      : m_pass(pass), m_sizes(sizesOf(pass)), m_layout(layout), m_origin(origin) {}

  Html markup() const {
    const DrawnPoint heading{m_origin.x, m_origin.y + kNameFontPx};
    Html parts = textAt(heading, {{"font-size", px(kNameFontPx)}, {"font-weight", "600"}}, phaseHeading(m_pass.phase));
    for (std::size_t i = 0; i < m_pass.frames.size(); ++i) parts += frame(i);
    parts += wires();
    for (std::size_t i = 0; i < m_pass.frames.size(); ++i) parts += frameTitle(i);
    for (std::size_t i = 0; i < m_pass.boxes.size(); ++i) parts += box(i);
    return element("g", {{"class", std::string(phaseName(m_pass.phase))}}, parts + "\n"_html);
  }

 private:
  DrawnPoint moved(const DrawnPoint& point) const { return {point.x + m_origin.x, point.y + m_origin.y + kHeadingPx}; }

  static DrawnRect centredAt(const DrawnPoint& centre, const DrawnSize& size) {
    return {{centre.x - size.width / 2, centre.y - size.height / 2}, size};
  }

  Html frame(std::size_t index) const {
    const DrawnFrame& frame = m_pass.frames[index];
    const GraphLayout::Frame& place = m_layout.frames[index];
    const FrameLook look = lookOf(frame.kind);
    const char* color = kLightPalette.*look.color;
    HtmlAttributes outline = {{"class", "hull"}, {"fill-opacity", "0.07"}, {"fill", color}, {"stroke", color}};
    if (look.dashes) outline.emplace_back("stroke-dasharray", look.dashes);
    return "\n"_html + element("g", {{"class", look.name}},
                               textElement("title", frame.tip) +
                                   rectangle({moved(place.rect.topLeft), place.rect.size}, kCornerPx + 2, outline));
  }

  /// Above the wires, on a separate background.
  Html frameTitle(std::size_t index) const {
    const DrawnFrame& frame = m_pass.frames[index];
    const FrameLook look = lookOf(frame.kind);
    const char* const color = kLightPalette.*look.color;
    const DrawnPoint centre = moved(m_layout.frames[index].title);
    const double offCentre = frame.figure.empty() ? 0.0 : kLabelLinePx / 2;
    Html parts = textElement("title", frame.tip) +
                 rectangle(centredAt(centre, titleSize(frame)), 3.0,
                           {{"class", "chip"}, {"fill", kLightPalette.paper}, {"fill-opacity", "0.85"}}) +
                 centred({centre.x, centre.y - offCentre}, titleOf(frame), color);
    if (!frame.figure.empty()) parts += centred({centre.x, centre.y + offCentre}, frame.figure, color);
    return "\n"_html + element("g", {{"class", look.name}}, parts);
  }

  static DrawnPoint baselineAt(const DrawnPoint& centre) { return {centre.x, centre.y + kLabelFontPx * 0.35}; }

  static Html centred(const DrawnPoint& centre, const std::string& text, const char* color) {
    return textAt(
        baselineAt(centre),
        {{"class", "hull-title"}, {"font-size", px(kLabelFontPx)}, {"fill", color}, {"text-anchor", "middle"}}, text);
  }

  /// Common attributes are written once.
  Html wires() const {
    Html lines, tips, labels;
    for (std::size_t i = 0; i < m_pass.wires.size(); ++i) {
      const GraphLayout::Wire& place = m_layout.wires[i];
      if (place.curves.empty()) continue;
      std::string path;
      for (const GraphLayout::Curve& each : place.curves) path += curve(each);
      lines += "\n"_html + shape("path", {{"d", path}});
      tips += "\n"_html + shape("path", {{"d", tip(place)}});
      const std::string& label = m_pass.wires[i].label;
      if (!label.empty()) labels += "\n"_html + textAt(baselineAt(moved(place.label)), {}, label);
    }
    const std::string color = kLightPalette.dimText;
    const HtmlAttributes ofLabels = {
        {"class", "label"}, {"fill", color}, {"font-size", px(kLabelFontPx)}, {"text-anchor", "middle"}};
    return "\n"_html + element("g", {{"class", "wire"}, {"fill", "none"}, {"stroke", color}}, lines) + "\n"_html +
           element("g", {{"class", "tip"}, {"fill", color}}, tips) + "\n"_html + element("g", ofLabels, labels);
  }

  std::string pointText(const DrawnPoint& point) const {
    const DrawnPoint at = moved(point);
    return px(at.x) + "," + px(at.y);
  }

  std::string curve(const GraphLayout::Curve& points) const {
    std::string path = "M" + pointText(points.front());
    for (std::size_t i = 1; i < points.size(); ++i) path += (i == 1 ? "C" : " ") + pointText(points[i]);
    return path;
  }

  /// A triangle between the curve's end and the tip.
  std::string tip(const GraphLayout::Wire& place) const {
    const DrawnPoint& base = place.curves.back().back();
    const double length = std::max(std::hypot(place.tip.x - base.x, place.tip.y - base.y), 1e-3);
    const double acrossX = kTipHalfWidthPx * (place.tip.y - base.y) / length;
    const double acrossY = kTipHalfWidthPx * (place.tip.x - base.x) / length;
    return "M" + pointText(place.tip) + "L" + pointText({base.x + acrossX, base.y - acrossY}) + "L" +
           pointText({base.x - acrossX, base.y + acrossY}) + "Z";
  }

  Html box(std::size_t index) const {
    const DrawnBox& box = m_pass.boxes[index];
    const DrawnRect rect = centredAt(moved(m_layout.boxes[index]), m_sizes[index]);
    const Html parts = textElement("title", box.tip) + ground(box, rect) + texts(box, rect);
    if (!isOp(box)) return "\n"_html + element("g", {{"class", "end"}}, parts);
    const HtmlAttributes attributes = {{"class", "op"}, {"id", opAnchor(m_pass.phase, box.node)}};
    const Html content = box.link.empty() ? parts : element("a", {{"href", box.link}}, parts);
    return "\n"_html + element("g", attributes, content);
  }

  static Html ground(const DrawnBox& box, const DrawnRect& rect) {
    const std::string fill = box.heat ? hexOf(heatColor(*box.heat)) : kLightPalette.node;
    const Html shape =
        rectangle(rect, isOp(box) ? kCornerPx : rect.size.height / 2,
                  {{"class", box.heat ? "box heat" : "box"}, {"fill", fill}, {"stroke", kLightPalette.nodeBorder}});
    return isOp(box) ? shape + stripe(toneOf(box.category), rect) : shape;
  }

  /// Along the left side, with its corners.
  static Html stripe(const CategoryTone& tone, const DrawnRect& rect) {
    const std::string path =
        fmt::format("M{0},{1}h{2}v{3}h-{2}a{4},{4} 0 0 1 -{4},-{4}v-{5}a{4},{4} 0 0 1 {4},-{4}z",
                    px(rect.topLeft.x + kCornerPx), px(rect.topLeft.y), px(kStripePx - kCornerPx + 2.0),
                    px(rect.size.height), px(kCornerPx), px(rect.size.height - 2 * kCornerPx));
    return shape("path", {{"class", std::string(tone.name)}, {"d", path}, {"fill", kLightPalette.*tone.color}});
  }

  static Html texts(const DrawnBox& box, const DrawnRect& rect) {
    const std::vector<BoxLine> lines = linesOf(box);
    const double pad = (rect.size.height - kLinePx * static_cast<double>(lines.size())) / 2;
    Html texts;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const double baseline = rect.topLeft.y + pad + kLinePx * (static_cast<double>(i) + 0.76);
      const double left = isOp(box) ? kTextInsetPx + kStripePx : rect.size.width / 2;
      texts += textAt({rect.topLeft.x + left, baseline}, textLook(box, lines[i]), lines[i].text);
    }
    return texts;
  }

  static HtmlAttributes textLook(const DrawnBox& box, const BoxLine& line) {
    const bool isTitle = line.look == std::string_view("title");
    HtmlAttributes look = {{"font-size", px(line.fontPx)}};
    if (isOp(box) && isTitle) look.emplace_back("font-weight", "600");
    if (!isOp(box)) look.emplace_back("text-anchor", "middle");
    if (!box.heat) look.emplace_back("class", line.look);
    look.emplace_back("fill", textColor(box, isTitle));
    return look;
  }

  static const char* textColor(const DrawnBox& box, bool isTitle) {
    if (box.heat) return wantsWhiteText(heatColor(*box.heat)) ? "#ffffff" : "#000000";
    return isTitle ? kLightPalette.text : kLightPalette.dimText;
  }

  const DrawnPass& m_pass;
  std::vector<DrawnSize> m_sizes;  // of the boxes
  const GraphLayout& m_layout;
  DrawnPoint m_origin;
};

}  // namespace

std::string phaseHeading(Phase phase) { return phase == Phase::Forward ? "forward ↓" : "backward ↑"; }

Html svgPass(const DrawnPass& pass, const GraphLayout& layout, const DrawnPoint& origin) {
  return PassWriter(pass, layout, origin).markup();
}

FrameLook lookOf(FrameKind kind) {
  switch (kind) {
    case FrameKind::Forward: return {"forward", &DrawingPalette::forward, nullptr};
    case FrameKind::Backward: return {"backward", &DrawingPalette::backward, "6 3"};
    case FrameKind::Joint: return {"joint", &DrawingPalette::joint, "9 3 2 3"};
    case FrameKind::Block: break;
  }
  return {"block", &DrawingPalette::dimText, "2 3"};
}

}  // namespace fuseline
