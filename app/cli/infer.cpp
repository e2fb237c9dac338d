// fuseline infer: shape, dtype, bytes and FLOPs on every edge and op.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/pipeline_options.h"
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"

#include <fmt/format.h>

namespace fuseline::cli {

namespace {
namespace infer_parts {

struct InferOptions : PipelineOptions {};

FlopCount flopsOf(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  FlopCount flops;
  if (node.operation->flops) flops = node.operation->flops(node.attributes, graph.inputSpecs(id));
  if (!node.takesPartInBackward()) flops.backward = 0;
  return flops;
}

Json tensorJson(const std::string& name, const TensorSpec& spec) {
  return {{"name", name}, {"dtype", dtypeName(spec.dtype)}, {"shape", spec.shape}, {"bytes", spec.bytes()}};
}

Json edgeJson(const Graph& graph, const Value& value) {
  Json json = tensorJson(value.name, value.spec);
  Json readers = Json::array();
  for (const Use& use : value.uses) readers.push_back(graph.node(use.node).id);
  json["producer"] = value.producer < 0 ? Json(nullptr) : Json(graph.node(value.producer).id);
  json["readers"] = readers;
  json["needsGradient"] = value.needsGradient;
  return json;
}

Json opJson(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const FlopCount flops = flopsOf(graph, id);
  Json parameters = Json::array();
  for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
    parameters.push_back(tensorJson(node.parameterName(slot), node.parameters[static_cast<std::size_t>(slot)]));
  Json inputs = Json::array();
  for (const ValueId input : node.inputs) inputs.push_back(graph.value(input).name);
  Json outputs = Json::array();
  for (const ValueId output : node.outputs) outputs.push_back(graph.value(output).name);
  return {{"id", node.id},
          {"owner", node.owner},
          {"op", node.operation->name},
          {"inputs", inputs},
          {"outputs", outputs},
          {"parameters", parameters},
          {"flopsForward", flops.forward},
          {"flopsBackward", flops.backward}};
}

Json toJson(const Graph& graph) {
  Json edges = Json::array();
  for (const Value& value : graph.values()) edges.push_back(edgeJson(graph, value));
  Json ops = Json::array();
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) ops.push_back(opJson(graph, id));
  Json outputs = Json::array();
  for (const GraphOutput& output : graph.outputs())
    outputs.push_back({{"name", output.name}, {"from", graph.value(output.value).name}});
  return {{"pass", nameOf(graph.pass())}, {"edges", edges}, {"ops", ops}, {"outputs", outputs}};
}

void addTensorRow(Table& table, const std::string& name, const char* role, const TensorSpec& spec) {
  table.addRow(
      {name, role, fuseline::toString(spec.shape), std::string(dtypeName(spec.dtype)), formatBytes(spec.bytes())});
}

/// "-" where nothing is computed.
std::string flopsText(std::int64_t flops) { return flops == 0 ? "-" : formatFlops(static_cast<double>(flops)); }

FlopCount addOpRows(Table& table, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const FlopCount flops = flopsOf(graph, id);
  table.addRow({Cell(node.id, Style::Bold),
                node.operation->name,
                Cell(node.note(), Style::Dim),
                {},
                {},
                flopsText(flops.forward),
                flopsText(flops.backward)});
  for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
    addTensorRow(table, "  " + node.parameterName(slot), "parameter", node.parameters[static_cast<std::size_t>(slot)]);
  for (const ValueId output : node.outputs)
    addTensorRow(table, "  " + graph.value(output).name, "output", graph.value(output).spec);
  return flops;
}

void printTable(const Graph& graph, Context& context) {
  Table table({{"", Align::Left},
               {"", Align::Left},
               {"shape", Align::Left},
               {"dtype", Align::Left},
               {"bytes"},
               {"forward"},
               {"backward"}});
  for (const ValueId id : graph.inputs()) addTensorRow(table, graph.value(id).name, "input", graph.value(id).spec);
  FlopCount total;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const FlopCount flops = addOpRows(table, graph, id);
    total.forward += flops.forward;
    total.backward += flops.backward;
  }
  table.addRule();
  table.addRow({Cell("sum", Style::Bold), {}, {}, {}, {}, flopsText(total.forward), flopsText(total.backward)});
  context.out << table.toString(context.hasColour);
  for (const GraphOutput& output : graph.outputs())
    context.out << fmt::format("output {} = {}\n", output.name, graph.value(output.value).name);
}

Result<int> infer(const InferOptions& options, Context& context) {
  Result<OpenedPipeline> pipeline = openPipeline(options, context);
  if (!pipeline) return pipeline.error();
  if (options.asJson)
    printJson(context, toJson(pipeline->graph()));
  else
    printTable(pipeline->graph(), context);
  return 0;
}

schema::Fields tensorFields() {
  return {{"name", schema::text("Name of the tensor.")},
          {"dtype", schema::choice({"f32", "f16", "bf16", "i64"})},
          {"shape", schema::list({{"type", "integer"}})},
          {"bytes", schema::integer("Size of its data.")}};
}

Json edgeSchema() {
  schema::Fields fields = tensorFields();
  fields.emplace_back("producer", schema::orNull(schema::text("Op that produces the tensor; null: a pipeline input.")));
  fields.emplace_back("readers", schema::texts("Ops that consume the tensor."));
  fields.emplace_back("needsGradient", schema::flag("Whether training computes its gradient."));
  return schema::object(fields);
}

Json inferSchema() {
  const Json op =
      schema::object({{"id", schema::text("Id of the basic op.")},
                      {"owner", schema::text("Op of the file from which it was expanded.")},
                      {"op", schema::text("Name of the op in the library.")},
                      {"inputs", schema::texts("Names of the input tensors.")},
                      {"outputs", schema::texts("Names of the output tensors.")},
                      {"parameters", schema::list(schema::object(tensorFields()))},
                      {"flopsForward", schema::integer("Floating-point operations of one forward call.")},
                      {"flopsBackward", schema::integer("FLOP of one call; 0: it is not part of backward.")}});
  return schema::object(
      {{"pass", schema::choice({"forward", "train"})},
       {"edges", schema::list(edgeSchema())},
       {"ops", schema::list(op)},
       {"outputs", schema::list(schema::object({{"name", schema::text("Name of the output.")},
                                                {"from", schema::text("Tensor between two ops.")}}))}});
}

}  // namespace infer_parts
}  // namespace

void addInferVerb(CLI::App& app, Context& context) {
  using namespace infer_parts;
  const auto options = std::make_shared<InferOptions>();
  CLI::App* verb =
      addVerb(app, context, "infer", "Show the shape, dtype and bytes of every tensor, and the FLOPs of every op.",
              options, infer, inferSchema);
  addFileOptions(*verb, *options);
  addFusionOptions(*verb, *options);
}

}  // namespace fuseline::cli
