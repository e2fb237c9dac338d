// All exporters of pipelines, in the order in which they are listed.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/pipeline_exporter.h"

#include "core/edit/apply_edit.h"
#include "core/export/drawing/svg_exporter.h"
#include "core/export/inspect/dlfw_inspect.h"
#include "core/export/onnx/onnx_exporter.h"
#include "core/export/te/te_python.h"
#include "core/export/torch/torch_python.h"

#include <algorithm>
#include <array>

namespace fuseline {

namespace {

Result<PipelineText> dot(const ExportedPipeline& pipeline) {
  return PipelineText{toDot(pipeline.analysis.graph(), pipeline.analysis.report)};
}

Result<PipelineText> plan(const ExportedPipeline& pipeline) {
  return PipelineText{toJson(pipeline.analysis.graph(), pipeline.analysis.report).dump(2) + "\n"};
}

}  // namespace

std::span<const PipelineExporter> pipelineExporters() {
  static const std::array all = {
      PipelineExporter{
          .name = "te",
          .title = "TransformerEngine module",
          .ending = ".py",
          .summary = "Python module made of te.ops, with its recipe; the script can time and check the module",
          .write = tePython},
      PipelineExporter{
          .name = "torch",
          .title = "PyTorch module",
          .ending = ".py",
          .summary = "PyTorch modules; the script loads the original model's weights and checks the results",
          .write = torchPython},
      PipelineExporter{
          .name = "svg",
          .title = "Laid out drawing",
          .ending = ".svg",
          .summary = "The graph with its fusions, forward and backward; Fuseline can open the picture as a pipeline",
          .write = svgDrawing},
      PipelineExporter{.name = "dot",
                       .title = "Graphviz drawing",
                       .ending = ".dot",
                       .summary = "The graph with its fusions, forward and backward, for Graphviz",
                       .write = dot},
      PipelineExporter{.name = "plan",
                       .title = "Fusion plan",
                       .ending = ".json",
                       .summary = "The plan and every attempt, for `fuseline fuse --expect`",
                       .write = plan},
      PipelineExporter{
          .name = "dlfw-inspect",
          .title = "nvidia-dlfw-inspect configuration",
          .ending = ".yaml",
          .summary = "The recipe's overrides, and the statistics to log, for TransformerEngine's debug tool",
          .write = dlfwInspect},
      PipelineExporter{.name = "onnx",
                       .title = "ONNX model",
                       .ending = ".onnx",
                       .summary = "The forward pass with its weights, for onnxruntime, TensorRT and others",
                       .write = onnxFile},
  };
  return all;
}

const PipelineExporter* findPipelineExporter(std::string_view name) {
  const auto all = pipelineExporters();
  const auto found = std::ranges::find(all, name, &PipelineExporter::name);
  return found == all.end() ? nullptr : &*found;
}

Result<std::string> contentOf(const PipelineText& exported) {
  return exported.bytes ? exported.bytes() : Result<std::string>(exported.text);
}

PipelineDocument documentAsAnalysed(const ExportedPipeline& pipeline) {
  PipelineDocument document = pipeline.document;
  for (const auto& [name, value] : pipeline.options.lowering.symbols)
    if (document.symbols().contains(name)) (void)applyEdit(document, SetSymbol{.name = name, .value = value});
  if (pipeline.options.recipe) (void)applyEdit(document, SetRecipe{toJson(*pipeline.options.recipe)});
  return document;
}

}  // namespace fuseline
