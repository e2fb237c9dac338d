// Draws what was measured: the graph of the pipeline in the run, with the steps of the run's own plan.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/html_graph.h"

#include "core/export/drawing/drawn_pass.h"
#include "core/export/drawing/palette.h"
#include "core/export/drawing/svg_graph.h"
#include "core/runtime/measured_pipeline.h"
#include "core/support/text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

std::optional<Graph> graphOf(const RunRecord& record) {
  const Result<MeasuredPipeline> measured = measuredPipeline(record);
  if (!measured || measured->document.ops().size() > kMostDrawnOps) return std::nullopt;
  LoweredGraph lowered = lower(measured->document, {.pass = measured->pass});
  if (hasErrors(lowered.diagnostics)) return std::nullopt;
  return std::move(lowered.graph);
}

const VariantRecord* drawnVariant(const RunRecord& record) {
  const VariantRecord* fused = record.variant("fused");
  return fused ? fused : record.variant("unfused");
}

/// "12 %", "0.4 %", "<0.1 %".
std::string percentText(double share) {
  const double percent = 100.0 * share;
  if (percent < 0.05) return "<0.1 %";
  return fmt::format("{:.{}f} %", percent, percent < 9.95 ? 1 : 0);
}

/// "norm, fc1, act and 3 more": each op of a step has them in its tip.
std::string namesOf(const std::vector<std::string>& ops) {
  constexpr std::size_t kMostNames = 6;
  const std::size_t numNamed = ops.size() <= kMostNames ? ops.size() : kMostNames - 1;
  const std::vector<std::string> named(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(numNamed));
  const std::size_t numOthers = ops.size() - numNamed;
  return fmt::format("{}{}", fmt::join(named, ", "), numOthers > 0 ? fmt::format(" and {} more", numOthers) : "");
}

class GraphSection {
 public:
  GraphSection(const RunRecord& record, const Comparison& comparison, const VariantRecord& variant, Graph graph)
      : m_record(record), m_comparison(comparison), m_variant(variant), m_graph(std::move(graph)) {
    for (const StepRecord& step : variant.steps) {
      const double ns = medianOf(step);
      m_sumNs += ns;
      if (step.ops.empty())
        m_boxlessNs += ns;
      else
        m_longestNs = std::max(m_longestNs, ns);
    }
  }

  /// Steps whose ops the graph has not are those of another version.
  bool hasAllOps() const {
    return std::ranges::all_of(m_record.variants, [this](const VariantRecord& variant) {
      return std::ranges::all_of(variant.steps, [this](const StepRecord& step) {
        return std::ranges::all_of(step.ops, [this](const std::string& op) { return m_graph.findNode(op) >= 0; });
      });
    });
  }

  ReportGraph drawn(const LayOutGraph& layOut) {
    std::vector<DrawnPass> passes = {passOf(Phase::Forward)};
    if (DrawnPass backward = passOf(Phase::Backward); !backward.boxes.empty()) passes.push_back(std::move(backward));
    const Result<Html> svg = svgOf(passes, layOut, {.use = SvgUse::InPage});
    if (!svg) return {};
    ReportGraph graph{.ops = opsOfRows(passes)};
    graph.markup =
        caption() + legend() +
        element("div", {{"class", "drawing"}, {"tabindex", "0"}, {"role", "group"}, {"aria-label", "Graph"}}, *svg);
    return graph;
  }

 private:
  bool isTimed() const { return m_sumNs > 0.0 && m_longestNs > 0.0; }

  static double medianOf(const StepRecord& step) {
    return step.samplesNs.empty() || step.isView ? 0.0 : summarize(step.samplesNs).median;
  }

  // ---------------------------------------------------------------------------------------------------------- the pass

  DrawnPass passOf(Phase phase) const {
    DrawnPass pass = drawnPass(m_graph, fusions(phase), phase);
    for (const StepRecord& step : m_variant.steps)
      if (step.phase == phaseName(phase)) addTimes(step, pass);
    addLinks(pass);
    return pass;
  }

  std::vector<DrawnFusion> fusions(Phase phase) const {
    std::vector<DrawnFusion> fusions;
    for (const StepRecord& step : m_variant.steps) {
      if (step.phase != phaseName(phase) || step.rule.empty()) continue;
      const FrameKind kind = phase == Phase::Forward ? FrameKind::Forward : FrameKind::Backward;
      fusions.push_back({.kind = isJoint(step) ? FrameKind::Joint : kind,
                         .title = step.rule,
                         .figure = figureOf(step),
                         .nodes = nodesOf(step)});
    }
    return fusions;
  }

  /// A rule that makes steps of both passes.
  bool isJoint(const StepRecord& step) const {
    return std::ranges::any_of(m_variant.steps, [&](const StepRecord& other) {
      return other.rule == step.rule && other.phase != step.phase && other.ops == step.ops;
    });
  }

  std::vector<NodeId> nodesOf(const StepRecord& step) const {
    std::vector<NodeId> nodes;
    for (const std::string& op : step.ops) nodes.push_back(m_graph.findNode(op));
    return nodes;
  }

  /// "412.3 us · 38 %"; empty: it was not timed.
  std::string figureOf(const StepRecord& step) const {
    const double ns = medianOf(step);
    return ns > 0.0 && isTimed() ? formatDuration(ns) + " · " + percentText(ns / m_sumNs) : std::string();
  }

  /// Ops that run as one have its colour each, and its figure once, in the title of their frame.
  void addTimes(const StepRecord& step, DrawnPass& pass) const {
    const double ns = medianOf(step);
    const bool isFused = !step.rule.empty();
    for (const NodeId node : nodesOf(step)) {
      DrawnBox* const box = pass.boxOf(node);
      if (!box) continue;
      if (isTimed() && ns > 0.0) box->heat = ns / m_longestNs;
      if (!isFused) box->figure = step.isView ? "a view: nothing runs" : figureOf(step);
      box->tip += "\n" + tipOf(step);
    }
  }

  std::string tipOf(const StepRecord& step) const {
    const double ns = medianOf(step);
    const std::string name = step.rule.empty() ? "step " + step.name : step.rule + " of " + namesOf(step.ops);
    if (step.isView) return name + "\na view: nothing runs";
    if (ns <= 0.0 || !isTimed()) return name + "\nnot timed";
    return fmt::format("{}\nmedian {}\n{} of the sum of all steps' medians", name, formatDuration(ns),
                       percentText(ns / m_sumNs));
  }

  // ------------------------------------------------------------------------------------------------------------- links

  /// Rows of steps; those of their parts come after them.
  void addLinks(DrawnPass& pass) const {
    for (std::size_t row = 0; row < m_comparison.rows.size(); ++row) {
      if (m_comparison.rows[row].phase != phaseName(pass.phase)) continue;
      for (const NodeId node : nodesOfRow(row))
        if (DrawnBox* const box = pass.boxOf(node); box && box->link.empty()) box->link = "#" + rowAnchor(row);
    }
  }

  std::vector<NodeId> nodesOfRow(std::size_t row) const {
    const StepRecord* const step = stepOf(m_record, m_comparison.rows[row]);
    if (!step) return {};
    if (!step->ops.empty()) return nodesOf(*step);
    // What quantizes for an op is named after it: "fc1.quantize_input".
    const NodeId node = m_graph.findNode(step->name.substr(0, step->name.rfind('.')));
    return node < 0 ? std::vector<NodeId>() : std::vector{node};
  }

  OpsOfRows opsOfRows(const std::vector<DrawnPass>& passes) const {
    OpsOfRows ops(m_comparison.rows.size());
    for (const DrawnPass& pass : passes)
      for (std::size_t row = 0; row < ops.size(); ++row) {
        if (m_comparison.rows[row].phase != phaseName(pass.phase)) continue;
        for (const NodeId node : nodesOfRow(row))
          if (pass.boxOf(node)) ops[row].push_back({opAnchor(pass.phase, node), m_graph.node(node).id});
      }
    return ops;
  }

  // ------------------------------------------------------------------------------------------------------------- words

  Html caption() const {
    if (!isTimed())
      return "<p>Each box is an op; frames are fused ops. The steps of this run were not timed, so no op is "
             "shaded.</p>"_html;
    return textElement(
        "p", fmt::format("Each box is an op, shaded by the median time of the step that runs it in the {} plan; the "
                         "stripe is its category. Frames are fused ops: one step, whose colour all of its ops have. "
                         "Shares are of the sum of all steps' medians, {}, forward and backward.{}",
                         m_variant.name, formatDuration(m_sumNs), boxlessText()));
  }

  std::string boxlessText() const {
    if (m_boxlessNs <= 0.0) return {};
    return fmt::format(" {} of it are steps that only quantize, which have no box.",
                       percentText(m_boxlessNs / m_sumNs));
  }

  /// From nothing to the longest step.
  Html legend() const {
    if (!isTimed()) return {};
    std::vector<std::string> colors;
    for (const Rgb& stop : kHeatStops) colors.push_back(hexOf(stop));
    const std::string scale = fmt::format("background:linear-gradient(to right,{})", fmt::join(colors, ","));
    return element("p", {{"class", "legend"}},
                   textElement("span", "0") + element("span", {{"class", "scale"}, {"style", scale}}) +
                       textElement("span", fmt::format("{} ({})", formatDuration(m_longestNs),
                                                       percentText(m_longestNs / m_sumNs))));
  }

  const RunRecord& m_record;
  const Comparison& m_comparison;
  const VariantRecord& m_variant;
  Graph m_graph;
  double m_sumNs = 0.0;
  double m_boxlessNs = 0.0;  // of steps that only quantize
  double m_longestNs = 0.0;  // of those that are ops'
};

}  // namespace

ReportGraph reportGraph(const RunRecord& record, const Comparison& comparison, const LayOutGraph& layOut) {
  const VariantRecord* const variant = drawnVariant(record);
  if (!layOut || !variant) return {};
  std::optional<Graph> graph = graphOf(record);
  if (!graph) return {};
  GraphSection section(record, comparison, *variant, std::move(*graph));
  return section.hasAllOps() ? section.drawn(layOut) : ReportGraph();
}

}  // namespace fuseline
