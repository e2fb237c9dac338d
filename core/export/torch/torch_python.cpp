// The script: a head, classes, tables about them, and the programs of resources/torch, which are compiled in.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/torch/torch_python.h"

#include "core/document/embedded_pipeline.h"
#include "core/export/model/weight_map.h"
#include "core/export/te/python_text.h"
#include "core/export/te/te_tables.h"
#include "core/export/torch/torch_library.h"
#include "core/export/torch/torch_optimizer.h"
#include "core/export/torch/torch_units.h"
#include "core/ops/external.h"
#include "core/support/version.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kProgram =
#include "core/export/torch_main.inc"
    ;

std::string parameterTable(const TorchModules& modules) {
  std::string text = "# Fuseline's names of parameters, and their places in the module.\nPARAMETERS = {\n";
  for (const auto& [name, place] : modules.parameters)
    text += fmt::format("    {}: {},\n", pythonText(name), pythonText(place));
  return text + "}\n";
}

std::vector<std::string> notesOf(const ExportedPipeline& pipeline) {
  std::vector<std::string> notes;
  const Graph& graph = pipeline.analysis.graph();
  if (pipeline.analysis.recipe)
    notes.push_back(fmt::format("The recipe {} is left out: PyTorch computes in the dtypes of the tensors.",
                                pipeline.analysis.recipe->name()));
  if (std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.operation->name == "Dropout"; }))
    notes.emplace_back("Dropout uses PyTorch's random numbers, not Fuseline's.");
  return notes;
}

std::string head(const ExportedPipeline& pipeline, const std::vector<std::string>& notes) {
  std::string text = fmt::format(
      "#!/usr/bin/env python3\n\"\"\"{}, as modules of PyTorch.\n\nWritten by fuseline {}. Needs PyTorch 2.4 or "
      "newer{}",
      docText(pipeline.name), version(),
      pipeline.moduleOnly ? "." : ", and safetensors for --check and --weights.\nThe pipeline file is at the end.");
  for (const std::string& note : notes) text += fmt::format("\n* {}", docText(note));
  text += "\n\"\"\"\n\n";
  const bool hasOptimizer = pipeline.analysis.graph().optimizer().has_value();
  if (!pipeline.moduleOnly)
    text += fmt::format("import argparse\n{}import statistics\nimport sys\nimport time\n\n",
                        hasOptimizer ? "import math\n" : "");
  else if (hasOptimizer)
    text += "import math\n\n";
  return text + "import torch\n\n\n";
}

/// The pipeline is cut at them, so that the script would compute something else. Nothing: there are none.
std::optional<Error> externalRefused(const ExportedPipeline& pipeline) {
  const std::vector<Diagnostic>& diagnostics = pipeline.analysis.lowered.diagnostics;
  const auto found = std::ranges::find(diagnostics, kExternalCode, &Diagnostic::code);
  if (found == diagnostics.end()) return std::nullopt;
  return Error{
      fmt::format("{}: an External cannot be written in PyTorch. Use --to te, or replace it by ops.", found->node)};
}

}  // namespace

Result<PipelineText> torchPython(const ExportedPipeline& pipeline) {
  const Graph& graph = pipeline.analysis.graph();
  if (std::optional<Error> refused = externalRefused(pipeline)) return std::move(*refused);
  std::vector<std::string> notes = notesOf(pipeline);
  const Result<TorchModules> modules = torchModules(graph, docText(pipeline.name));
  if (!modules) return modules.error();
  const Json table = weightTable(pipeline.document);
  std::string text =
      head(pipeline, notes) + usedTorchModules(modules->classes) + modules->classes + "\n\n" + optimizerClass(graph);
  if (!pipeline.moduleOnly) text += inputTables(graph, ScriptTable::Torch);
  if (!pipeline.moduleOnly || !table.empty()) text += parameterTable(*modules) + weightsText(table);
  if (!pipeline.moduleOnly)
    text +=
        fmt::format("TRAINS = {}\nTOLERANCE = {}\n{}\n\n{}\n\n{}\n{}",
                    pythonBool(graph.pass() == ExecutionMode::Training), pythonNumber(scriptTolerance(graph)),
                    trainingProgram(graph), tensorsProgram(), kProgram, embedded(documentAsAnalysed(pipeline), "# "));
  return PipelineText{.text = std::move(text), .notes = std::move(notes)};
}

}  // namespace fuseline
