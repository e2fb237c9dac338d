// Writes the tables as lists and dictionaries of Python.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_tables.h"

#include "core/export/te/python_text.h"
#include "core/export/te/torch_formula.h"
#include "core/ops/grouped_form.h"
#include "core/sharding/placements.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr const char* kTensorsProgram =
#include "core/export/torch_tensors.inc"
    ;
constexpr const char* kParametersProgram =
#include "core/export/torch_parameters.inc"
    ;
constexpr const char* kWeightsProgram =
#include "core/export/torch_weights.inc"
    ;

/// Counts share out the rows of what their reader reads.
std::int64_t rowsFor(const Graph& graph, ValueId input) {
  const Value& value = graph.value(input);
  return value.uses.empty() ? 0 : graph.value(graph.node(value.uses[0].node).inputs[0]).spec.rows();
}

/// Rows of a table, experts, rows of a permuted tensor, or classes.
std::int64_t boundFor(const Graph& graph, const Node& node) {
  if (node.operation->name == "Embedding") return node.parameters[0].shape[0];
  if (node.operation->name == "MoEPermute") return node.attributes.integer("num_experts");
  const TensorSpec& x = graph.value(node.inputs[0]).spec;
  return node.operation->name == "MoEUnpermute" ? x.rows() : x.cols();
}

/// The number that every integer of an input must be below; below 0 the rows that its counts share out.
std::int64_t boundOf(const Graph& graph, ValueId input) {
  std::int64_t bound = 1;
  for (const Use& use : graph.value(input).uses) {
    const Node& node = graph.node(use.node);
    if (node.operation->name == "GroupedLinear" && use.slot == GroupedForm::kSplitSizes) return -rowsFor(graph, input);
    const std::int64_t most = boundFor(graph, node);
    bound = bound == 1 ? most : std::min(bound, most);
  }
  return bound;
}

/// Both programs quantize the same numbers, so that results differ where a value near the middle between two codes
/// falls to the other side: an estimate for 1 of 25 elements, a fifth of one unit in the last place. Stochastic
/// rounding draws other numbers: a whole unit, of norms a quarter.
double toleranceOf(const QuantizerSpec& spec) {
  if (spec.roundsStochastically) return 0.25;
  switch (spec.format) {
    case ElementFormat::E2M1: return 0.1;
    case ElementFormat::E5M2: return 0.05;
    default: return 0.025;
  }
}

class TableWriter {
 public:
  TableWriter(const Graph& graph, const FusionReport& report, const std::string& capability,
              const std::vector<TeModule>& modules, const std::vector<ModuleBetween>& between)
      : m_graph(graph), m_report(report), m_capability(capability), m_modules(modules), m_between(between) {}

  std::string write() const {
    return inputTables(m_graph, ScriptTable::TransformerEngine) + parameterTable() + shardTable() + planTable() +
           fmt::format("TRAINS = {}\nOVERWRITES_INPUTS = {}\nIS_PARALLEL = {}\nTOLERANCE = {}\nNOT_RUN = [{}]\n",
                       pythonBool(m_graph.pass() == ExecutionMode::Training), pythonBool(overwritesInputs()),
                       pythonBool(isParallel(m_modules)), pythonNumber(scriptTolerance(m_graph)),
                       fmt::join(modulesNotRun(), ", "));
  }

 private:
  /// By Fuseline.
  std::vector<std::string> modulesNotRun() const {
    std::vector<std::string> paths;
    for (const ModuleBetween& module : m_between) paths.push_back(pythonText(module.path));
    return paths;
  }

  /// By the names of `fuseline run --save` and `--dump`.
  std::string parameterTable() const {
    std::string text = "# Fuseline's names of parameters, and their places in the module.\nPARAMETERS = {\n";
    for (const TeModule& module : m_modules) {
      if (!module.sequence.isTe) {
        const Node& formula = m_graph.node(module.sequence.nodes[0]);
        text += parameterLines(formula, module.name, torchParameterNames(formula));
      }
      for (std::size_t i = 0; i < module.operations.size(); ++i)
        for (const NodeId node : module.operations[i].nodes)
          text += parameterLines(m_graph.node(node), module.name + "." + module.operationNames[i],
                                 namesOf(m_graph.node(node)));
    }
    return text + "}\n";
  }

  /// Parts of whole tensors, such as those of a dump.
  std::string shardTable() const {
    if (!isParallel(m_modules)) return "SHARDS = {}\nPARTIAL_GRADIENTS = []\nUSERBUFFERS = None\n";
    constexpr int kSeveralRanks = 2;  // placements are those of any number
    const Result<Placements> placements = inferPlacements(m_graph, kSeveralRanks);
    if (!placements)
      return "# A rank's parts of the tensors are not known.\nSHARDS = None\nPARTIAL_GRADIENTS = []\n" +
             userbuffersLine();
    std::string text =
        "# Tensors that are sharded over the ranks: axis, and number of equal parts along it. A rank has a share of "
        "each part.\nSHARDS = {\n";
    for (const ValueId input : outerInputs(m_graph))
      text += shardLine(m_graph.value(input).name, placements->values[static_cast<std::size_t>(input)]);
    for (const GraphOutput& output : outerOutputs(m_graph))
      text += shardLine(output.name, placements->values[static_cast<std::size_t>(output.value)]);
    for (NodeId id = 0; id < static_cast<NodeId>(m_graph.nodes().size()); ++id)
      for (int slot = 0; slot < static_cast<int>(m_graph.node(id).parameters.size()); ++slot)
        text += shardLine(m_graph.node(id).parameterName(slot), parameterShard(m_graph, *placements, id, slot));
    return text + "}\n" + partialGradientsLine(*placements) + userbuffersLine();
  }

  static std::string shardLine(const std::string& name, const Shard& shard) {
    if (shard.kind == Shard::Kind::Whole) return {};
    if (shard.kind == Shard::Kind::Summand) return fmt::format("    {}: \"first\",\n", pythonText(name));
    return fmt::format("    {}: ({}, {}),\n", pythonText(name), shard.axis, shard.parts);
  }

  std::string partialGradientsLine(const Placements& placements) const {
    std::vector<std::string> names;
    for (NodeId id = 0; id < static_cast<NodeId>(m_graph.nodes().size()); ++id)
      if (hasPartialGradients(m_graph, placements, id))
        for (int slot = 0; slot < static_cast<int>(m_graph.node(id).parameters.size()); ++slot)
          names.push_back(pythonText(m_graph.node(id).parameterName(slot)));
    return fmt::format("PARTIAL_GRADIENTS = [{}]\n", fmt::join(names, ", "));
  }

  /// Shape of the buffer: the largest tensor that is gathered or scattered.
  std::string userbuffersLine() const {
    std::int64_t rows = 0;
    std::int64_t features = 0;
    DType dtype = DType::BF16;
    for (const Node& node : m_graph.nodes()) {
      if (!node.attributes.has("userbuffers_comm_name")) continue;
      const TensorSpec& x = m_graph.value(node.inputs.front()).spec;
      const TensorSpec& y = m_graph.value(node.outputs.front()).spec;
      const bool isColumn = node.attributes.text("tensor_parallel_mode") == "column";
      rows = std::max(rows, x.rows());
      features = std::max(features, isColumn ? x.cols() : y.cols());
      dtype = y.dtype;
    }
    return rows == 0 ? "USERBUFFERS = None\n"
                     : fmt::format("USERBUFFERS = ([{}, {}], {})\n", rows, features, torchType(dtype));
  }

  static std::vector<std::string> namesOf(const Node& node) {
    std::vector<std::string> names;
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
      names.push_back(teParameterName(node, slot));
    return names;
  }

  /// names: of its parameters in the module at this place.
  static std::string parameterLines(const Node& node, const std::string& place, const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t slot = 0; slot < node.parameters.size(); ++slot)
      text += fmt::format("    {}: {},\n", pythonText(node.parameterName(static_cast<int>(slot))),
                          pythonText(place + "." + names[slot]));
    return text;
  }

  std::string planTable() const {
    std::string text = fmt::format(
        "# Fusions that TransformerEngine should apply on a GPU of compute capability {}: [class, positions], by\n"
        "# module and pass. In the backward pass only fusions of differentiated ops count.\nPLAN = {{\n",
        m_capability);
    for (const TeModule& module : m_modules)
      if (module.sequence.isTe)
        text += fmt::format(
            "    {}: {{\n        \"forward\": [{}],\n        \"backward\": [{}],\n        \"differentiated\": {},\n    "
            "}},\n",
            pythonText(module.name), fusedText(module.sequence, m_report.forward),
            fusedText(module.sequence, m_report.backward), differentiatedText(module.sequence));
    return text + "}\n";
  }

  std::string differentiatedText(const TeSequence& sequence) const {
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < sequence.nodes.size(); ++place)
      if (m_graph.node(sequence.nodes[place]).takesPartInBackward()) places.push_back(place);
    const bool isAll = places.size() == sequence.nodes.size();
    return isAll ? fmt::format("range({})", places.size()) : fmt::format("[{}]", fmt::join(places, ", "));
  }

  /// A line an entry.
  static std::string fusedText(const TeSequence& sequence, const std::vector<FusedOperation>& entries) {
    std::string text;
    for (const FusedOperation& entry : entries) {
      const auto first = std::ranges::search(sequence.nodes, entry.nodes).begin();
      if (!entry.isFused() || first == sequence.nodes.end()) continue;
      std::vector<std::ptrdiff_t> places(entry.nodes.size());
      std::iota(places.begin(), places.end(), first - sequence.nodes.begin());
      text += fmt::format("\n            [{}, [{}]],", pythonText(entry.rule->name), fmt::join(places, ", "));
    }
    return text.empty() ? text : text + "\n        ";
  }

  bool overwritesInputs() const {
    return std::ranges::any_of(m_graph.nodes(), [](const Node& node) {
      return node.attributes.has("in_place") && node.attributes.boolean("in_place");
    });
  }

  const Graph& m_graph;
  const FusionReport& m_report;
  const std::string& m_capability;
  const std::vector<TeModule>& m_modules;
  const std::vector<ModuleBetween>& m_between;
};

}  // namespace

std::string inputTables(const Graph& graph, ScriptTable table) {
  const bool isTorch = table == ScriptTable::Torch;
  std::string text =
      fmt::format("# Shape, dtype, whether it has a gradient, and {}.\nINPUTS = {{\n",
                  isTorch ? "the upper bound of its integers; below 0: counts with this many rows in total"
                          : "for counts, their total number of rows");
  for (const ValueId input : outerInputs(graph)) {
    const Value& value = graph.value(input);
    text += statement(pythonText(value.name) + ": ",
                      {"",
                       {toString(value.spec.shape), torchType(value.spec.dtype), pythonBool(value.needsGradient),
                        fmt::format("{}", isTorch ? boundOf(graph, input) : rowsFor(graph, input))}},
                      ",", 4);
  }
  std::vector<std::string> names;
  for (const GraphOutput& output : outerOutputs(graph)) names.push_back(pythonText(output.name));
  return text + fmt::format("}}\nOUTPUTS = [{}]\n", fmt::join(names, ", "));
}

/// The rtol of TransformerEngine's own tests (tests/pytorch/utils.py, dtype_tols).
double scriptTolerance(const Graph& graph) {
  double largest = 1e-3;
  for (const Value& value : graph.values())
    if (value.spec.dtype == DType::BF16) largest = 1.6e-2;
  for (const Node& node : graph.nodes())
    for (const TensorQuantizers* tensor :
         {&node.quantizers.input, &node.quantizers.weight, &node.quantizers.gradOutput})
      for (const std::optional<QuantizerSpec>* spec : {&tensor->rowwise, &tensor->columnwise})
        if (*spec) largest = std::max(largest, toleranceOf(**spec));
  return largest;
}

std::string weightsText(const Json& table) {
  if (table.empty()) return fmt::format("WEIGHTS = []\n\n\n{}\n\n", kParametersProgram);
  std::string text = "# Tensors of the original model that each parameter is made of.\nWEIGHTS = [\n";
  for (const Json& entry : table) text += fmt::format("    {},\n", entry.dump());
  return fmt::format("{}]\n\n\n{}\n\n{}\n\n", text, kParametersProgram, kWeightsProgram);
}

std::string tensorsProgram() { return kTensorsProgram; }

std::string teTables(const Graph& graph, const FusionReport& report, const std::string& capability,
                     const std::vector<TeModule>& modules, const std::vector<ModuleBetween>& between) {
  return TableWriter(graph, report, capability, modules, between).write();
}

}  // namespace fuseline
