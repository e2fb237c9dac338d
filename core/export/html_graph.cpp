// Draws the graph of a run, and finds the rows of its ops.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/html_graph.h"

#include "core/export/drawing/measured_graph.h"
#include "core/export/drawing/palette.h"
#include "core/export/drawing/svg_graph.h"
#include "core/support/text.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// Ties the boxes of a graph to the rows of a comparison.
class GraphRows {
 public:
  GraphRows(const RunRecord& record, const Comparison& comparison, const MeasuredGraph& graph)
      : m_record(record), m_comparison(comparison), m_graph(graph) {}

  /// To rows of steps; those of their parts come after them.
  void addLinks(DrawnPass& pass) const {
    for (std::size_t row = 0; row < m_comparison.rows.size(); ++row)
      for (const NodeId node : nodesOf(row, pass.phase))
        if (DrawnBox* const box = pass.boxOf(node); box && box->link.empty()) box->link = "#" + rowAnchor(row);
  }

  OpsOfRows ops(const std::vector<DrawnPass>& passes) const {
    OpsOfRows ops(m_comparison.rows.size());
    for (const DrawnPass& pass : passes)
      for (std::size_t row = 0; row < ops.size(); ++row)
        for (const NodeId node : nodesOf(row, pass.phase))
          if (const DrawnBox* const box = pass.boxOf(node))
            ops[row].push_back({opAnchor(pass.phase, box->node), m_graph.graph().node(node).id});
    return ops;
  }

 private:
  std::vector<NodeId> nodesOf(std::size_t row, Phase phase) const {
    if (m_comparison.rows[row].phase != phaseName(phase)) return {};
    const StepRecord* const step = stepOf(m_record, m_comparison.rows[row]);
    return step ? m_graph.nodesOf(*step) : std::vector<NodeId>();
  }

  const RunRecord& m_record;
  const Comparison& m_comparison;
  const MeasuredGraph& m_graph;
};

std::string undrawnText(const MeasuredGraph& graph) {
  std::string text;
  if (graph.quantizingNs() > 0.0)
    text += fmt::format(" {} of it is quantization steps, which are not drawn.", graph.shareText(graph.quantizingNs()));
  if (graph.optimizerNs() > 0.0)
    text += fmt::format(" {} of it is the optimizer, which is not drawn.", graph.shareText(graph.optimizerNs()));
  return text;
}

Html captionOf(const MeasuredGraph& graph) {
  if (!graph.isTimed())
    return "<p>Each box is an op; frames are fused ops. The steps of this run were not timed, so no op is "
           "shaded.</p>"_html;
  return textElement("p", fmt::format("Each box is an op, shaded by the median time of its step in the {} plan; the "
                                      "stripe is its category. A frame is a fused op: one step, so its ops share a "
                                      "color. Shares are of the sum of all step medians, {}, forward and backward.{}",
                                      graph.variant(), formatDuration(graph.sumNs()), undrawnText(graph)));
}

/// From nothing to the hottest op.
Html legendOf(const MeasuredGraph& graph) {
  if (!graph.isTimed()) return {};
  std::vector<std::string> colors;
  for (const Rgb& stop : kHeatStops) colors.push_back(hexOf(stop));
  const std::string scale = fmt::format("background:linear-gradient(to right,{})", fmt::join(colors, ","));
  return element("p", {{"class", "legend"}},
                 textElement("span", "0") + element("span", {{"class", "scale"}, {"style", scale}}) +
                     textElement("span", graph.hottest()));
}

}  // namespace

ReportGraph reportGraph(const RunRecord& record, const Comparison& comparison, const LayOutGraph& layOut) {
  if (!layOut) return {};
  const Result<MeasuredGraph> graph = MeasuredGraph::of(record);
  if (!graph) return {};
  const GraphRows rows(record, comparison, *graph);
  std::vector<DrawnPass> passes = graph->passes();
  for (DrawnPass& pass : passes) rows.addLinks(pass);
  const Result<Html> svg = svgOf(passes, layOut, {.use = SvgUse::InPage});
  if (!svg) return {};
  const HtmlAttributes drawing = {{"class", "drawing"}, {"tabindex", "0"}, {"role", "group"}, {"aria-label", "Graph"}};
  return {.markup = captionOf(*graph) + legendOf(*graph) + element("div", drawing, *svg), .ops = rows.ops(passes)};
}

}  // namespace fuseline
