// The JSON Schema of the pipeline file. Unknown fields are allowed everywhere, because they are kept.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/block_operation.h"
#include "core/document/file_format.h"
#include "core/document/format_version.h"
#include "core/ops/catalog.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

Json reference(std::string_view definition) { return {{"$ref", fmt::format("#/$defs/{}", definition)}}; }

Json object(Json properties, Json required) {
  return {{"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
}

Json listOf(Json items, std::string description) {
  return {{"type", "array"}, {"description", std::move(description)}, {"items", std::move(items)}};
}

struct DefaultValue {
  Json operator()(std::monostate) const { return nullptr; }
  template <class Value>
  Json operator()(const Value& value) const {
    return value;
  }
};

// The limits hold for numbers; an expression's value is only known to the program.
void addLimits(const AttributeSpec& spec, Json& number) {
  const auto limit = [&](double value) {
    return spec.type == AttributeType::Real ? Json(value) : Json(static_cast<std::int64_t>(value));
  };
  if (spec.minimum) number["minimum"] = limit(*spec.minimum);
  if (spec.maximum) number["maximum"] = limit(*spec.maximum);
}

Json numberOrExpression(const AttributeSpec& spec, const char* type) {
  Json number = {{"type", type}};
  addLimits(spec, number);
  return Json::array({number, reference("expression")});
}

Json typeSchema(const AttributeSpec& spec) {
  switch (spec.type) {
    case AttributeType::Boolean: return {{"type", "boolean"}};
    case AttributeType::Integer: return {{"anyOf", numberOrExpression(spec, "integer")}};
    case AttributeType::Real: return {{"anyOf", numberOrExpression(spec, "number")}};
    case AttributeType::Text:
      if (spec.isName) return {{"type", "string"}, {"pattern", "^[A-Za-z_][A-Za-z0-9_]*$"}};
      if (spec.choices.empty()) return {{"type", "string"}};
      return {{"enum", spec.choices}};
    case AttributeType::IntegerList: {
      Json choices = numberOrExpression(spec, "integer");
      choices.push_back({{"type", "array"}, {"items", {{"anyOf", numberOrExpression(spec, "integer")}}}});
      return {{"anyOf", std::move(choices)}};
    }
  }
  return Json::object();
}

Json attributeSchema(const AttributeSpec& spec) {
  Json schema =
      spec.isRequired() ? typeSchema(spec) : Json{{"anyOf", Json::array({typeSchema(spec), {{"type", "null"}}})}};
  const std::string unit = spec.unit.empty() ? "" : fmt::format(" Unit: {}.", spec.unit);
  schema["description"] = spec.help + unit;
  if (Json value = std::visit(DefaultValue{}, spec.defaultValue); !value.is_null())
    schema["default"] = std::move(value);
  return schema;
}

Json attributesSchema(const FusibleOperation& operation) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const AttributeSpec& spec : operation.attributes) {
    properties[spec.name] = attributeSchema(spec);
    if (spec.isRequired()) required.push_back(spec.name);
  }
  return object(std::move(properties), std::move(required));
}

// "If this op is a Linear, its attributes are these."
Json opCondition(const FusibleOperation& operation) {
  return {{"if", {{"properties", {{"op", {{"const", operation.name}}}}}, {"required", {"op"}}}},
          {"then", {{"properties", {{"attributes", attributesSchema(operation)}}}}}};
}

constexpr const char* kInstancePattern = "^block:[^./:@\\s\"]+$";

Json instanceCondition() {
  Json properties = Json::object();
  for (const AttributeSpec& spec : instanceAttributes()) properties[spec.name] = attributeSchema(spec);
  Json attributes = object(std::move(properties), Json::array());
  return {{"if", {{"properties", {{"op", {{"pattern", kInstancePattern}}}}}, {"required", {"op"}}}},
          {"then", {{"properties", {{"attributes", std::move(attributes)}}}}}};
}

Json opSchema() {
  Json names = Json::array();
  Json conditions = Json::array();
  for (const auto& operation : builtinOperations().operations()) {
    names.push_back({{"const", operation->name}, {"description", operation->summary}});
    conditions.push_back(opCondition(*operation));
  }
  conditions.push_back(instanceCondition());
  names.push_back({{"type", "string"},
                   {"pattern", kInstancePattern},
                   {"description", "An instance of a block of this file: its inputs and outputs are the ports."}});
  // Ops this version does not know are kept, so any other name is text.
  names.push_back({{"type", "string"}});
  Json schema =
      object({{"id", reference("id")},
              {"op", {{"description", "The kind of op, an entry of `fuseline ops`."}, {"anyOf", names}}},
              {"bypassed",
               {{"type", "boolean"},
                {"default", false},
                {"description", "Bypassed: consumers of its main output get its main input. Since format 1.2."}}},
              {"attributes", {{"type", "object"}}}},
             {"id", "op"});
  schema["allOf"] = std::move(conditions);
  return schema;
}

Json inputSchema(Json required) {
  return object(
      {{"id", reference("id")},
       {"dtype", {{"enum", {"f32", "f16", "bf16", "i64", "float32", "float16", "bfloat16", "int64"}}}},
       {"shape", listOf(reference("extent"), "Dimensions, outermost first.")},
       {"requires_grad",
        {{"type", "boolean"},
         {"default", true},
         {"description", "Whether backward computes the gradient of this input. Integers have no gradient."}}}},
      std::move(required));
}

Json outputSchema() { return object({{"id", reference("id")}, {"from", reference("endpoint")}}, {"id", "from"}); }

Json frameSchema() {
  Json colors = Json::array();
  for (const std::string_view color : kFrameColors) colors.push_back({{"const", color}});
  colors.push_back({{"type", "string"}});  // a newer version may have more
  const Json place = {{"type", "integer"}, {"minimum", -kMaxFramePlace}, {"maximum", kMaxFramePlace}};
  const Json side = {{"type", "integer"}, {"minimum", 1}, {"maximum", kMaxFrameSide}};
  return object(
      {{"id", {{"type", "string"}, {"description", "Unique among the frames of its list."}}},
       {"title", {{"type", "string"}}},
       {"text", {{"type", "string"}, {"description", "Plain text of a note, which may have several lines."}}},
       {"area",
        {{"type", "array"},
         {"prefixItems", {place, place, side, side}},
         {"minItems", 4},
         {"maxItems", 4},
         {"description", "x, y, width and height."}}},
       {"color", {{"description", "Color; gray by default."}, {"anyOf", std::move(colors)}}},
       {"locked", {{"type", "boolean"}, {"default", false}, {"description", "Locked: cannot be moved or resized."}}}},
      {"id", "area"});
}

Json definitions() {
  const Json integer = {{"type", "integer"}};
  return {
      {"id",
       {{"type", "string"}, {"pattern", "^[^./:@\\s\"]+$"}, {"description", "Unique among all ids of the file."}}},
      {"expression",
       {{"type", "string"}, {"description", "An integer expression over symbols: names, numbers, + - * / and ( )."}}},
      {"extent", {{"anyOf", {{{"type", "integer"}, {"minimum", 0}}, reference("expression")}}}},
      {"endpoint", {{"type", "string"}, {"description", "\"op.port\", or the id of a pipeline input."}}},
      {"wire",
       {{"type", "array"},
        {"prefixItems", {reference("endpoint"), reference("endpoint")}},
        {"minItems", 2},
        {"maxItems", 2},
        {"description", "From an output port or a pipeline input to an input port."}}},
      {"position",
       {{"type", "array"}, {"items", integer}, {"minItems", 2}, {"maxItems", 2}, {"description", "x and y."}}},
      {"input", inputSchema(Json::array({"id", "dtype", "shape"}))},
      {"block_input", inputSchema(Json::array({"id"}))},
      {"op", opSchema()},
      {"output", outputSchema()},
      {"frame", frameSchema()},
  };
}

Json listsSection(std::string_view input) {
  return object({{"inputs", listOf(reference(input), "Input tensors.")},
                 {"ops", listOf(reference("op"), "The ops, in any order.")},
                 {"wires", listOf(reference("wire"), "Connections from outputs to inputs.")},
                 {"outputs", listOf(reference("output"), "Output tensors.")}},
                {"inputs", "ops", "wires", "outputs"});
}

Json fusionSection() {
  return {{"type", {"object", "null"}},
          {"properties",
           {{"rules", {{"enum", {"te", "all"}}, {"description", "Rule set to use."}}},
            {"without", listOf({{"type", "string"}}, "Disabled rules: RULE or RULE@OP.")},
            {"with", listOf({{"type", "string"}},
                            "Requested rules, which are off by default because they cost time: RULE or RULE@OP.")}}}};
}

Json viewSection() {
  return {{"type", "object"},
          {"properties",
           {{"positions", {{"type", "object"}, {"additionalProperties", reference("position")}}},
            {"frames", listOf(reference("frame"), "Titled frames around ops, and notes. Since format 1.3.")}}}};
}

// An input may declare dtype and shape; without them it accepts any tensor of its instances.
Json blocksSection() {
  Json block = listsSection("block_input");
  block["properties"]["view"] = viewSection();
  return {{"type", "object"},
          {"description", "Named blocks of ops, used by ops with \"op\": \"block:NAME\". Since format 1.1."},
          {"additionalProperties", std::move(block)}};
}

Json weightsSection() {
  const Json text = {{"type", "string"}};
  const Json entry = object(
      {{"parameter", {{"type", "string"}, {"description", "Its name; {} is the number of the layer."}}},
       {"tensors", listOf(text, "Names in the model's files, concatenated along the first axis.")},
       {"order", {{"enum", {"as_stored", "transposed", "heads_together", "experts", "pairs_apart"}}}},
       {"heads", {{"type", "integer"}, {"minimum", 1}}},
       {"rows",
        listOf({{"type", "integer"}, {"minimum", 1}}, "Number of rows of each tensor, if the tensors differ in it.")},
       {"shape", listOf({{"type", "integer"}, {"minimum", 1}},
                        "Shape of each tensor in the files, if it is not that of the parameter.")},
       {"first",
        {{"type", "integer"},
         {"minimum", 0},
         {"description", "First row of the parameter in a tensor of which other parameters have the other rows."}}},
       {"together",
        {{"type", "string"},
         {"description", "Name of the stacked tensor, for files that store all experts in one tensor."}}}},
      {"parameter", "tensors", "order"});
  return listOf(entry, "Tensor names of the parameters in the model's own safetensors files. Since format 1.4.");
}

/// Model inputs and outputs keep their names.
Json onnxSection() {
  const Json text = {{"type", "string"}};
  const Json tensor =
      object({{"name", text},
              {"from",
               {{"type", "string"},
                {"description", "Input or output of the pipeline, or OP.PORT; missing: the nodes produce it."}}}},
             {"name"});
  Json section = object({{"inputs", listOf(text, "Outputs of the pipeline that the nodes read, or OP.PORT.")},
                         {"outputs", listOf(text, "Inputs of the pipeline that the nodes produce.")},
                         {"model_outputs", listOf(tensor, "Outputs of the model, in its order.")},
                         {"nodes", {{"type", "string"}, {"description", "A ModelProto of ONNX in base64."}}},
                         {"constants", listOf(text, "Inputs of the pipeline that are constants of the model.")}},
                        {});
  section["description"] =
      "Nodes of an imported model before and after the pipeline, for the export to ONNX. Since format 1.5.";
  return section;
}

}  // namespace

Json pipelineSchema(Json recipe) {
  const Json number = {{"type", "integer"}, {"minimum", 0}};
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"$id", kSchemaName},
                 {"title", "Fuseline pipeline"}};
  schema.update(
      object({{"$schema", {{"type", "string"}}},
              {"format", {{"const", kFormatName}}},
              {"formatVersion", object({{"major", {{"const", kFormatMajor}}}, {"minor", number}}, {"major", "minor"})},
              {"symbols",
               {{"type", "object"},
                {"description", "Names for integers, for shapes and attributes."},
                {"additionalProperties", {{"anyOf", {{{"type", "integer"}}, reference("expression")}}}}}},
              {"blocks", blocksSection()},
              {"pipeline", listsSection("input")},
              {"recipe", std::move(recipe)},
              {"fusion", fusionSection()},
              {"weights", weightsSection()},
              {"onnx", onnxSection()},
              {"view", viewSection()}},
             {"format", "formatVersion", "pipeline"}));
  schema["$defs"] = definitions();
  return schema;
}

}  // namespace fuseline
