// Draws the passes of an analysis, and puts the pipeline into the picture.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/svg_exporter.h"

#include "core/document/json_text.h"
#include "core/document/picture.h"
#include "core/export/drawing/svg_graph.h"

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

Error notDrawn(const std::string& why) {
  return Error{
      fmt::format("--to svg: {}. `fuseline export --to dot` writes the graph for other programs, such as dot "
                  "-Tsvg.",
                  why)};
}

}  // namespace

Result<PipelineText> svgDrawing(const ExportedPipeline& pipeline) {
  if (!pipeline.layOut) return notDrawn("this build has no Graphviz, which places the ops (Debian: libgraphviz-dev)");
  const std::string title = isUtf8(pipeline.name) ? pipeline.name : "pipeline";
  const Result<Html> svg = svgOf(passesOf(pipeline.analysis), pipeline.layOut, {.use = SvgUse::File, .title = title});
  if (!svg) return notDrawn(svg.error().message);
  return PipelineText{withPipeline(svg->toString() + "\n", serialize(documentAsAnalysed(pipeline)))};
}

}  // namespace fuseline
