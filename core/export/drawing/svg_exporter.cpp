// Draws the passes of an analysis, and puts the pipeline into the picture.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/svg_exporter.h"

#include "core/document/json_text.h"
#include "core/document/picture.h"
#include "core/export/drawing/measured_graph.h"
#include "core/export/drawing/svg_graph.h"
#include "core/runtime/measured_pipeline.h"
#include "core/support/text.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::vector<DrawnPass> passesOf(const Analysis& analysis) {
  const auto passOf = [&](const std::vector<FusedOperation>& entries, Phase phase) {
    return drawnPass(analysis.graph(), fusionsOf(analysis.graph(), entries, phase), phase);
  };
  std::vector<DrawnPass> passes = {passOf(analysis.report.forward, Phase::Forward)};
  DrawnPass backward = passOf(analysis.report.backward, Phase::Backward);
  if (!backward.boxes.empty()) passes.push_back(std::move(backward));
  return passes;
}

std::string withoutStop(std::string sentence) {
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

Error notDrawn(const std::string& why) {
  return Error{fmt::format("--to svg: {}. `fuseline export --to dot` writes the graph for other programs.", why)};
}

Error noLibrary() { return notDrawn("this build has no Graphviz, which lays out the graph (Debian: libgraphviz-dev)"); }

std::optional<HeatLegend> legendOf(const MeasuredGraph& graph) {
  if (!graph.isTimed()) return std::nullopt;
  return HeatLegend{.caption = fmt::format("median times of steps, {} plan; shares of their sum, {}", graph.variant(),
                                           formatDuration(graph.sumNs())),
                    .most = graph.hottest()};
}

Result<std::string> file(const std::vector<DrawnPass>& passes, const LayOutGraph& layOut, SvgOptions options,
                         const PipelineDocument& document) {
  if (!isUtf8(options.title)) options.title = "pipeline";
  const Result<Html> svg = svgOf(passes, layOut, options);
  if (!svg) return notDrawn(svg.error().message);
  return withPipeline(svg->toString() + "\n", serialize(document));
}

}  // namespace

Result<PipelineText> svgDrawing(const ExportedPipeline& pipeline) {
  if (!pipeline.layOut) return noLibrary();
  Result<std::string> svg =
      file(passesOf(pipeline.analysis), pipeline.layOut, {.title = pipeline.name}, documentAsAnalysed(pipeline));
  return svg ? Result<PipelineText>(PipelineText{std::move(*svg)}) : svg.error();
}

Result<std::string> svgDrawingOfRun(const RunRecord& record, const LayOutGraph& layOut) {
  if (!layOut) return noLibrary();
  const Result<MeasuredGraph> graph = MeasuredGraph::of(record);
  if (!graph) return Error{fmt::format("--to svg: {}.", withoutStop(graph.error().message))};
  return file(graph->passes(), layOut, {.title = record.title(), .legend = legendOf(*graph)},
              measuredPipeline(record)->document);
}

}  // namespace fuseline
