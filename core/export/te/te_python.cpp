// The script: a head, a module, tables about it, and the program of resources/te/main.py, which is compiled in.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_python.h"

#include "core/document/embedded_pipeline.h"
#include "core/edit/apply_edit.h"
#include "core/export/model/weight_map.h"
#include "core/export/te/between_modules.h"
#include "core/export/te/modules_between.h"
#include "core/export/te/python_text.h"
#include "core/export/te/te_attention.h"
#include "core/export/te/te_forward.h"
#include "core/export/te/te_module.h"
#include "core/export/te/te_operation.h"
#include "core/export/te/te_recipe.h"
#include "core/export/te/te_refusals.h"
#include "core/export/te/te_sequences.h"
#include "core/export/te/te_tables.h"
#include "core/export/te/torch_formula.h"
#include "core/export/torch/torch_library.h"
#include "core/export/torch/torch_optimizer.h"
#include "core/fusion/rules/conditions.h"
#include "core/graph/in_place_hazards.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/version.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr const char* kProgram =
#include "core/export/te_main.inc"
    ;

/// A pipeline whose ops in place are safe in TransformerEngine, planned with its rules.
struct TePlan {
  Graph graph;
  FusionReport report;
  std::optional<Recipe> recipe;
  std::vector<TeEnvironment> environment;
};

Result<std::string> moduleOutsideTeOps(const Graph& graph, NodeId node, const std::string& className) {
  if (isTeModule(graph.node(node))) return teModule(graph, node, className);
  return torchModule(graph, node, className);
}

std::string replaced(std::string line, const std::string& operation) {
  for (std::size_t at = line.find("{}"); at != std::string::npos; at = line.find("{}", at + operation.size()))
    line.replace(at, 2, operation);
  return line;
}

class Script {
 public:
  Script(const ExportedPipeline& pipeline, TePlan plan, std::string capability, std::vector<std::string> notes)
      : m_pipeline(pipeline),
        m_plan(std::move(plan)),
        m_capability(std::move(capability)),
        m_notes(std::move(notes)),
        m_between(modulesBetween(documentAsAnalysed(pipeline), m_plan.graph)) {}

  Result<PipelineText> write() {
    if (Result<void> prepared = m_between.prepare(); !prepared) return prepared.error();
    m_notes.insert(m_notes.end(), m_between.notes().begin(), m_between.notes().end());
    const TeRecipe recipe = teRecipe(m_plan.recipe, graph());
    m_quantizerNames = recipe.names;
    m_notes.insert(m_notes.end(), recipe.notes.begin(), recipe.notes.end());
    addModules();
    const Result<std::string> formulas = otherModules();
    if (!formulas) return formulas.error();
    if (isParallel(m_modules))
      m_notes.emplace_back(
          "The ops that communicate need a process group. With one process TransformerEngine skips communication; "
          "under torchrun with several it fuses as planned here.");
    std::string text =
        head() + usedTorchModules(*formulas) + m_between.classes() + *formulas + pipelineClass() + "\n\n" + recipe.text;
    if (graph().optimizer()) text += "\n" + optimizerClass(graph());
    if (m_pipeline.moduleOnly) return PipelineText{.text = std::move(text), .notes = std::move(m_notes)};
    text += teTables(graph(), m_plan.report, m_capability, m_modules, m_between.all()) +
            weightsText(weightTable(m_pipeline.document)) + trainingProgram(graph()) + "\n\n" + tensorsProgram() +
            "\n\n" + kProgram + "\n";
    text += embedded(documentAsAnalysed(m_pipeline), "# ");
    return PipelineText{.text = std::move(text), .notes = std::move(m_notes)};
  }

 private:
  const Graph& graph() const { return m_plan.graph; }

  /// Modules of ops that te.ops does not have.
  Result<std::string> otherModules() const {
    std::string text;
    for (const TeModule& module : m_modules) {
      if (module.sequence.isTe) continue;
      const Result<std::string> made = moduleOutsideTeOps(graph(), module.sequence.nodes[0], className(module));
      if (!made) return made.error();
      text += *made + "\n\n";
    }
    return text;
  }

  void addModules() {
    PythonNames members(moduleMembers());
    for (const ModuleBetween& module : m_between.all()) m_betweenNames.push_back(members.of(module.path));
    std::vector<TeSequence> sequences = teSequences(graph(), m_plan.report, m_between.all(), recipe());
    const bool isOne = std::ranges::count_if(sequences, &TeSequence::isTe) == 1;
    int part = 0;
    for (TeSequence& sequence : sequences) {
      TeModule module{.sequence = std::move(sequence)};
      const std::string wish = isOne ? "layers" : fmt::format("part{}", part + 1);
      part += module.sequence.isTe ? 1 : 0;
      noteBorder(module.sequence);
      module.name = module.sequence.isTe ? members.fresh(wish) : members.of(graph().node(module.sequence.nodes[0]).id);
      if (module.sequence.isTe) addOperations(module);
      m_modules.push_back(std::move(module));
    }
  }

  void noteBorder(const TeSequence& sequence) {
    const NodeId producer = graph().value(sequence.input).producer;
    if (producer < 0 || !sequence.isTe || !writesQuantized(graph(), producer, sequence.nodes[0], recipe())) return;
    m_notes.push_back(
        fmt::format("{} begins a new te.ops.Sequential: after {} in the same one, TransformerEngine raises under {}, "
                    "because its GEMMs cannot write such quantized tensors.",
                    graph().node(sequence.nodes[0]).id, graph().node(producer).id, recipeName()));
  }

  const Recipe* recipe() const { return m_plan.recipe ? &*m_plan.recipe : nullptr; }
  std::string recipeName() const { return m_plan.recipe ? m_plan.recipe->name() : "this recipe"; }

  void addOperations(TeModule& module) {
    PythonNames names(moduleMembers());
    module.operations = teOperations(m_pipeline.document, graph(), module.sequence);
    for (TeOperation& operation : module.operations) {
      nameForQuantizers(operation);
      module.operationNames.push_back(names.of(operation.name));
      m_notes.insert(m_notes.end(), operation.notes.begin(), operation.notes.end());
    }
  }

  /// TransformerEngine's ops tell a CustomRecipe their attribute name, which their constructors leave out.
  void nameForQuantizers(TeOperation& operation) const {
    const auto known = m_quantizerNames.find(operation.nodes[0]);
    if (known == m_quantizerNames.end()) return;
    const char* const place = operation.call.callee == "te.ops.Linear" ? "{}.basic_ops[0]" : "{}";
    operation.statements.push_back(fmt::format("{}.name = {}", place, pythonText(known->second)));
    if (!isStoredQuantized()) return;
    // The factory quantized the weight before it could know the name. Quantizers of one recipe are made anew only after
    // a reset.
    for (const char* const call :
         {"reset_recipe_state(recipe=None)", "reset_recipe_state(recipe=RECIPE)", "reset_parameters()"})
      operation.statements.push_back(fmt::format("{}.{}", place, call));
  }

  std::string className(const TeModule& module) const {
    const Node& node = graph().node(module.sequence.nodes[0]);
    return fmt::format("{}_{}", isTeModule(node) ? node.operation->name : "Formula", module.name);
  }

  // ---- the head

  std::string shapesOf(const std::vector<std::pair<std::string, ValueId>>& values) const {
    std::vector<std::string> texts;
    for (const auto& [name, value] : values) texts.push_back(fmt::format("{} {}", docText(name), specText(value)));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  std::string specText(ValueId value) const { return docText(toString(graph().value(value).spec)); }

  std::string signatureText() const {
    std::vector<std::pair<std::string, ValueId>> inputs, outputs;
    for (const ValueId input : outerInputs(graph())) inputs.emplace_back(graph().value(input).name, input);
    for (const GraphOutput& output : outerOutputs(graph())) outputs.emplace_back(output.name, output.value);
    return fmt::format("{} -> {}", shapesOf(inputs), shapesOf(outputs));
  }

  /// A name that Python can import, from the pipeline's name.
  std::string moduleName() const {
    std::string name;
    for (const char c : m_pipeline.name) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    const bool isName = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0;
    return isName ? name : "m" + name;
  }

  std::string head() const {
    std::string text = fmt::format(
        "#!/usr/bin/env python3\n\"\"\"{}: {}\n\nWritten by fuseline {}. `from {} import Pipeline, RECIPE` gives the "
        "module and its recipe{}\n{}",
        docText(m_pipeline.name), signatureText(), version(), moduleName(),
        m_pipeline.moduleOnly ? "." : ";\nas a program it measures a step on the GPU. The pipeline file is at the end.",
        needs());
    for (const std::string& note : m_notes) text += fmt::format("\n* {}", docText(note));
    return text + "\n\"\"\"\n\n" + imports() + "\n\n" + rankFunction();
  }

  std::string imports() const {
    std::string text;
    const std::string math = graph().optimizer() ? "import math\n" : "";
    if (!m_pipeline.moduleOnly)
      text = fmt::format("import argparse\nimport importlib.metadata\n{}import os\nimport statistics\nimport sys\n\n",
                         math);
    else if (const std::string os = m_plan.environment.empty() ? "" : "import os\n"; !(math + os).empty())
      text = math + os + "\n";
    for (const TeEnvironment& needed : m_plan.environment)
      text += fmt::format("os.environ.setdefault(\"{}\", \"1\")\n", needed.variable);
    const char* const unsorted = m_plan.environment.empty() ? "" : "  # noqa: E402";
    return text + fmt::format(
                      "{0}import torch{1}\nimport transformer_engine.pytorch as te{1}\nfrom "
                      "transformer_engine.common import recipe{1}\n",
                      m_plan.environment.empty() ? "" : "\n", unsorted);
  }

  /// Sizes that te.ops.Linear would divide by itself.
  std::string rankFunction() const {
    const bool isNeeded = std::ranges::any_of(m_modules, [](const TeModule& module) {
      return std::ranges::any_of(module.operations, [](const TeOperation& operation) {
        return std::ranges::any_of(operation.call.arguments, [](const std::string& argument) {
          return argument.find(kTensorParallelSize) != std::string::npos;
        });
      });
    });
    if (!isNeeded) return {};
    return fmt::format(
        "def {}:\n    \"\"\"Ranks of the group in which te.ops communicates: the default one.\"\"\"\n"
        "    is_parallel = torch.distributed.is_initialized()\n"
        "    return torch.distributed.get_world_size() if is_parallel else 1\n\n\n",
        kTensorParallelSize);
  }

  bool hasChannels() const {
    return std::ranges::any_of(m_modules, [&](const TeModule& module) {
      return std::ranges::any_of(module.operations, [&](const TeOperation& operation) {
        return std::ranges::any_of(graph().node(operation.nodes[0]).outputs,
                                   [&](ValueId value) { return isChannel(graph(), module.sequence, value); });
      });
    });
  }

  std::string needs() const {
    return hasChannels() ? "Needs PyTorch and TransformerEngine 2.19 or newer, which has channels for extra tensors."
                         : "Needs PyTorch and TransformerEngine, written for 2.19 and 2.20.";
  }

  // ---- the module

  std::string pipelineClass() {
    return fmt::format("class Pipeline(torch.nn.Module):\n    \"\"\"{}\"\"\"\n\n{}\n{}", signatureText(), constructor(),
                       teForward(graph(), m_modules, m_between.all(), m_betweenNames));
  }

  /// Its weights are quantized where they are made.
  bool isStoredQuantized() const {
    return std::ranges::any_of(graph().nodes(), [](const Node& node) { return node.quantizers.storesWeight; });
  }

  std::string constructor() const {
    std::string text = "    def __init__(self, device=\"cuda\"):\n        super().__init__()\n";
    if (isStoredQuantized())
      text +=
          "        with te.quantized_model_init(recipe=RECIPE):\n            self.make_layers(device)\n\n    def "
          "make_layers(self, device):\n";
    for (const TeModule& module : m_modules)
      text += module.sequence.isTe ? sequential(module)
                                   : fmt::format("        self.{} = {}(device)\n", module.name, className(module));
    for (std::size_t i = 0; i < m_between.all().size(); ++i)
      text +=
          fmt::format("        self.{} = ({}).to(device)\n", m_betweenNames[i], m_between.callOf(m_between.all()[i]));
    return text;
  }

  std::string sequential(const TeModule& module) const {
    std::string text = fmt::format("        self.{} = te.ops.Sequential(\n            {{\n", module.name);
    for (std::size_t i = 0; i < module.operations.size(); ++i)
      text += statement(fmt::format("{}: ", pythonText(module.operationNames[i])),
                        withChannels(module, module.operations[i]), ",", 16);
    text += "            }\n        )\n";
    for (std::size_t i = 0; i < module.operations.size(); ++i)
      for (const std::string& line : module.operations[i].statements)
        text += "        " + replaced(line, fmt::format("self.{}.{}", module.name, module.operationNames[i])) + "\n";
    return text;
  }

  /// Appends set_extra_input_channel() and set_extra_output_channel(); the last call is the one that may need lines.
  PythonCall withChannels(const TeModule& module, const TeOperation& operation) const {
    PythonCall call = operation.call;
    const Node& node = graph().node(operation.nodes[0]);
    for (std::size_t slot = 1; slot < node.inputs.size(); ++slot)
      if (isFromWithin(module, node.inputs[slot]))
        chain(call, "set_extra_input_channel", {fmt::format("{}", slot - 1), channelName(node.inputs[slot])});
    for (std::size_t slot = 1; slot < node.outputs.size(); ++slot)
      if (isChannel(graph(), module.sequence, node.outputs[slot])) chainOutput(module, call, node, slot);
    return call;
  }

  void chainOutput(const TeModule& module, PythonCall& call, const Node& node, std::size_t slot) const {
    std::vector<std::string> arguments = {fmt::format("{}", slot - 1), channelName(node.outputs[slot])};
    if (!isReturned(graph(), module.sequence, node.outputs[slot])) arguments.emplace_back("output_to_caller=False");
    chain(call, "set_extra_output_channel", std::move(arguments));
  }

  static void chain(PythonCall& call, const char* method, std::vector<std::string> arguments) {
    call.callee += fmt::format("({}).{}", fmt::join(call.arguments, ", "), method);
    call.arguments = std::move(arguments);
  }

  bool isFromWithin(const TeModule& module, ValueId value) const {
    return std::ranges::count(module.sequence.nodes, graph().value(value).producer) > 0;
  }

  std::string channelName(ValueId value) const { return pythonText(graph().value(value).name); }

  const ExportedPipeline& m_pipeline;
  TePlan m_plan;
  std::string m_capability;
  std::vector<std::string> m_notes;
  BetweenModules m_between;
  std::vector<std::string> m_betweenNames;
  std::map<NodeId, std::string> m_quantizerNames;
  std::vector<TeModule> m_modules;
};

/// Ops in place turned into ordinary ones where TransformerEngine would overwrite what is still needed.
Result<PipelineDocument> withSafeInPlace(const ExportedPipeline& pipeline, std::vector<std::string>& notes) {
  PipelineDocument document = pipeline.document;
  const Graph& graph = pipeline.analysis.graph();
  for (const InPlaceHazard& hazard : inPlaceHazards(graph)) {
    const Node& node = graph.node(hazard.node);
    if (Result<Edit> undo = applyEdit(document, rules::setAttribute(node, "in_place", false).edit); !undo)
      return undo.error();
    notes.push_back(fmt::format("{}: in_place is switched off, because {}.", node.id, hazardText(graph, hazard)));
  }
  return document;
}

/// The text behind a dtype that an op in place had kept.
Result<void> keepsDTypes(const Graph& before, const Graph& after) {
  for (std::size_t value = 0; value < before.values().size(); ++value) {
    const Value& had = before.values()[value];
    if (had.spec.dtype != after.values()[value].spec.dtype)
      return Error{fmt::format(
          "{}: TransformerEngine cannot compute this sum in place, and otherwise returns {}, not {}. Give both inputs "
          "one dtype.",
          before.node(had.producer).id, dtypeName(after.values()[value].spec.dtype), dtypeName(had.spec.dtype))};
  }
  return {};
}

/// Fuseline leaves a layer whose sizes do not fit in high precision, as the factory of a CustomRecipe does, and applies
/// what te.ops ignores.
void noteOtherQuantization(const ExportedPipeline& pipeline, std::vector<std::string>& notes) {
  const std::optional<Recipe>& recipe = pipeline.analysis.recipe;
  const bool isCustom = recipe && recipe->definition().isCustom;
  for (const Diagnostic& diagnostic : pipeline.analysis.lowered.diagnostics)
    if (diagnostic.code == "recipe-te")
      notes.push_back(diagnostic.message);
    else if (diagnostic.code == "recipe-shape" && !isCustom)
      notes.push_back(fmt::format("{} TransformerEngine quantizes this layer too, or raises.", diagnostic.message));
}

/// Those of the recipe, unless a GPU was named.
ComputeCapability capabilityFor(const ExportedPipeline& pipeline) {
  if (pipeline.options.capability) return *pipeline.options.capability;
  const ComputeCapability hopper{9, 0};
  const bool isEnough = !pipeline.analysis.recipe || supports(*pipeline.analysis.recipe, hopper);
  return isEnough ? hopper : ComputeCapability{10, 0};
}

/// As TransformerEngine plans, whose own kernels it has.
Result<TePlan> tePlan(const PipelineDocument& document, AnalysisOptions options) {
  options.book = RuleBook::Te;
  options.capabilities = {};
  Analysis analysis = analyze(document, options);
  if (hasErrors(analysis.lowered.diagnostics)) return Error{errorText(analysis.lowered.diagnostics, "export")};
  if (Result<void> taken = refuseForTe(analysis.graph(), analysis.recipe, options.ranks); !taken) return taken.error();
  std::vector<TeEnvironment> environment = teEnvironment(analysis.graph(), analysis.report);
  return TePlan{std::move(analysis.lowered.graph), std::move(analysis.report), std::move(analysis.recipe),
                std::move(environment)};
}

void noteEnvironment(const std::vector<TeEnvironment>& environment, std::vector<std::string>& notes) {
  for (const TeEnvironment& needed : environment)
    notes.push_back(fmt::format("{}; the script sets {}=1. Programs that import TransformerEngine earlier must set it.",
                                needed.reason, needed.variable));
}

}  // namespace

Result<PipelineText> tePython(const ExportedPipeline& pipeline) {
  std::vector<std::string> notes;
  const Result<PipelineDocument> document = withSafeInPlace(pipeline, notes);
  if (!document) return document.error();
  noteOtherQuantization(pipeline, notes);
  AnalysisOptions options = pipeline.options;
  options.capability = capabilityFor(pipeline);
  Result<TePlan> plan = tePlan(*document, options);
  if (!plan) return plan.error();
  if (Result<void> kept = keepsDTypes(pipeline.analysis.graph(), plan->graph); !kept) return kept.error();
  noteEnvironment(plan->environment, notes);
  for (std::string& note : groupRowNotes(plan->graph, plan->recipe, *options.capability))
    notes.push_back(std::move(note));
  return Script(pipeline, std::move(*plan), toString(*options.capability), std::move(notes)).write();
}

}  // namespace fuseline
