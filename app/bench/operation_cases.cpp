// Writes the pipelines of suite "ops". Tensors are beyond the last-level cache, so that memory limits a step that moves
// data.
// SPDX-License-Identifier: Apache-2.0
#include "app/bench/operation_cases.h"

#include "core/ops/catalog.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>
#include <variant>

namespace fuseline::cli {

namespace {

constexpr std::int64_t kCols = 4096;
constexpr std::array<const char*, 2> kDTypes = {"f32", "bf16"};
constexpr std::array kRecipes = {"None", "DelayedScaling", "Float8BlockScaling", "MXFP8BlockScaling"};
/// Further widths of norms.
constexpr std::array<std::int64_t, 3> kNormCols = {5120, 8192, 4095};
/// Beside kCols: the other side of a layer's products.
constexpr std::int64_t kThinCols = 128;

struct Extent {
  std::int64_t inputBytes;
  /// A GEMM is measured on fewer rows: memory does not limit it then either.
  std::int64_t productRows;
};

Extent extentOf(OperationSizes sizes) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  switch (sizes) {
    case OperationSizes::Quick: return {4 * kMiB, 1024};
    case OperationSizes::Cpu: return {128 * kMiB, 1024};
    case OperationSizes::Gpu: break;
  }
  return {256 * kMiB, 8192};  // five times the L2 cache of an H200
}

LoadedDocument documentOf(const Json& inputs, const Json& ops, const Json& wires, const Json& outputs) {
  const Json document = {{"format", "fuseline-pipeline"},
                         {"formatVersion", {{"major", 1}, {"minor", 0}}},
                         {"symbols", {{"M", 1024}, {"N", kCols}}},
                         {"pipeline", {{"inputs", inputs}, {"ops", ops}, {"wires", wires}, {"outputs", outputs}}}};
  return readDocument(document);
}

// ---- one op

/// Attributes without a default are sizes of the last axis.
Json attributesFor(const FusibleOperation& operation) {
  Json attributes = Json::object();
  for (const AttributeSpec& spec : operation.attributes) {
    if (!spec.isRequired()) continue;
    if (spec.type == AttributeType::Integer) attributes[spec.name] = "N";
    if (spec.type == AttributeType::IntegerList)  // -1 where an extent may follow from the others
      attributes[spec.name] = spec.minimum.value_or(0.0) < 0.0 ? Json::array({-1, "N"}) : Json::array({"N"});
    if (spec.type == AttributeType::Real) attributes[spec.name] = 0.5;
  }
  return attributes;
}

/// Extra inputs look like the main one, or have one value a row; counts are those of one group.
Json inputFor(const FusibleOperation& operation, const Port& port, const std::string& dtype) {
  const std::string id = "in_" + port.name;
  if (port.elements == PortElements::Counts) return {{"id", id}, {"dtype", "i64"}, {"shape", Json::array({1})}};
  const bool isLikeMain = &port == &operation.inputs.front() || port.shape == operation.inputs.front().shape;
  return {{"id", id}, {"dtype", dtype}, {"shape", isLikeMain ? Json::array({"M", "N"}) : Json::array({"M"})}};
}

LoadedDocument documentOfOne(const FusibleOperation& operation, const std::string& dtype) {
  Json inputs = Json::array();
  Json wires = Json::array();
  Json outputs = Json::array();
  for (const Port& port : operation.inputs) {
    inputs.push_back(inputFor(operation, port, dtype));
    wires.push_back({"in_" + port.name, "op." + port.name});
  }
  for (const Port& port : operation.outputs)
    outputs.push_back({{"id", "out_" + port.name}, {"from", "op." + port.name}});
  const Json op = {{"id", "op"}, {"op", operation.name}, {"attributes", attributesFor(operation)}};
  return documentOf(inputs, Json::array({op}), wires, outputs);
}

/// null: not set.
Json jsonOf(const AttributeValue& value) {
  return std::visit(
      [](const auto& known) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(known)>, std::monostate>)
          return nullptr;
        else
          return known;
      },
      value);
}

/// The op's own example.
LoadedDocument documentOfExample(const FusibleOperation& operation, const OperationCall& call) {
  const OperationPointer own = *specialised(operation, call.attributes);
  Json inputs = Json::array();
  Json wires = Json::array();
  Json outputs = Json::array();
  for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
    const std::string id = "in_" + own->inputs[slot].name;
    inputs.push_back({{"id", id}, {"dtype", dtypeName(call.inputs[slot].dtype)}, {"shape", call.inputs[slot].shape}});
    wires.push_back({id, "op." + own->inputs[slot].name});
  }
  for (const Port& port : own->outputs) outputs.push_back({{"id", "out_" + port.name}, {"from", "op." + port.name}});
  Json attributes = Json::object();
  for (const auto& [name, value] : call.attributes) attributes[name] = jsonOf(value);
  const Json op = {{"id", "op"}, {"op", operation.name}, {"attributes", attributes}};
  return documentOf(inputs, Json::array({op}), wires, outputs);
}

bool isProduct(const FusibleOperation& operation) {
  if (operation.name == "DotProductAttention") return true;
  return std::ranges::any_of(operation.parameters, [](const ParameterSpec& parameter) {
    return parameter.shape.find(',') != std::string::npos;
  });
}

std::int64_t rowsOf(OperationSizes sizes, const OperationCase& what) {
  const std::int64_t elementBytes = what.dtype == "f32" ? 4 : 2;
  const std::int64_t rows = extentOf(sizes).inputBytes / (what.cols * elementBytes);
  return what.operation && isProduct(*what.operation) ? std::min(rows, extentOf(sizes).productRows) : rows;
}

// ---- layers

/// A chain from x to y.
struct Layer {
  std::string name;
  Json inputs;
  std::vector<Json> ops;
};

Json op(const char* id, const char* name, Json attributes = Json::object()) {
  return {{"id", id}, {"op", name}, {"attributes", std::move(attributes)}};
}

Json input(const char* id, Json cols) {
  return {{"id", id}, {"dtype", "bf16"}, {"shape", Json::array({"M", std::move(cols)})}};
}

std::vector<Layer> makeLayers() {
  const auto linear = [](const char* id, Json in, Json out) {
    return op(id, "BasicLinear", {{"in_features", std::move(in)}, {"out_features", std::move(out)}});
  };
  const auto norm = [](const char* name) { return op("norm", name, {{"normalized_shape", Json::array({"N"})}}); };
  const Json wide = Json::array({input("x", "N")});
  const Json thin = Json::array({input("x", kThinCols)});
  const Json residual = Json::array({input("x", "N"), input("residual", "N")});
  const Json down = linear("down", "N", kThinCols);
  return {{"rmsnorm-linear", wide, {norm("RMSNorm"), down}},
          {"layernorm-linear", wide, {norm("LayerNorm"), down}},
          {"add-rmsnorm-linear",
           residual,
           {op("add", "AddExtraInput"), op("save", "MakeExtraOutput"), norm("RMSNorm"), down}},
          {"linear-gelu-linear", thin, {linear("up", kThinCols, "N"), op("act", "GELU"), down}},
          {"linear-swiglu-linear", thin, {linear("up", kThinCols, "2*N"), op("act", "SwiGLU"), down}}};
}

const std::vector<Layer>& layers() {
  static const std::vector<Layer> all = makeLayers();
  return all;
}

LoadedDocument documentOfLayer(const Layer& layer) {
  Json wires = Json::array();
  Json outputs = Json::array();
  std::string before = "x";
  for (const Json& each : layer.ops) {
    const std::string id = each["id"];
    wires.push_back({before, id + ".x"});
    if (each["op"] == "AddExtraInput") wires.push_back({"residual", id + ".extra"});
    if (each["op"] == "MakeExtraOutput") outputs.push_back({{"id", "residual_out"}, {"from", id + ".extra"}});
    before = id + ".y";
  }
  outputs.push_back({{"id", "y"}, {"from", before}});
  return documentOf(layer.inputs, layer.ops, wires, outputs);
}

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

void addCases(const FusibleOperation& operation, const char* dtype, std::vector<OperationCase>& cases) {
  OperationCase what{.name = operation.name, .dtype = dtype, .operation = &operation, .cols = kCols};
  cases.push_back(what);
  if (operation.category != "Normalization") return;
  for (const std::int64_t cols : kNormCols) {
    what.cols = cols;
    cases.push_back(what);
  }
}

}  // namespace

std::vector<OperationCase> operationCases() {
  std::vector<OperationCase> cases;
  for (const auto& operation : builtinOperations().operations())
    for (const char* dtype : kDTypes)
      if (!operation->isComposite()) addCases(*operation, dtype, cases);
  return cases;
}

std::vector<OperationCase> layerCases() {
  std::vector<OperationCase> cases;
  for (const Layer& layer : layers())
    for (const char* recipe : kRecipes) cases.push_back({.name = layer.name, .dtype = "bf16", .recipe = recipe});
  return cases;
}

LoadedDocument documentFor(const OperationCase& what, OperationSizes sizes) {
  if (!what.operation) return documentOfLayer(*std::ranges::find(layers(), what.name, &Layer::name));
  const FusibleOperation& operation = *what.operation;
  if (!operation.exampleCall) return documentOfOne(operation, what.dtype);
  const DType dtype = *parseDType(what.dtype);
  return documentOfExample(operation, operation.exampleCall(rowsOf(sizes, what) * what.cols, dtype));
}

PipelineRunOptions optionsFor(const OperationCase& what, const std::string& device, OperationSizes sizes) {
  const std::int64_t rows = rowsOf(sizes, what);
  PipelineRunOptions options;
  options.settings.device = device;
  options.settings.recipe = what.recipe;
  options.settings.symbols = {{"M", rows}, {"N", what.cols}};
  options.policy.budget = std::chrono::duration<double>(0.6);
  if (what.operation) options.variants = {"unfused"};
  // Activations stay steps of their own.
  options.switches.without = {"ForwardLinearEpilogue"};
  return options;
}

bool isMeasured(const OperationCase& what, const std::string& variant, const StepRecord& step) {
  if (what.operation) return true;
  if (variant == "unfused") return isOneOf(step.name, {"down.quantize_input", "up.quantize_grad_output"});
  const bool isThin = isOneOf(step.kernel, {"quantize", "BasicLinear"});
  return !step.isView && !isThin;
}

}  // namespace fuseline::cli
