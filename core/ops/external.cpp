// An op outside Fuseline, such as attention: its inputs, the shapes of its outputs, and its Python constructor.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/external.h"

#include "core/ops/formula_parser.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

bool isExternal(const FusibleOperation& operation) { return operation.isComposite() && operation.infer; }

bool isOfExternal(std::string_view tensor) { return tensor.find('.') != std::string_view::npos; }

std::string_view externalOf(std::string_view tensor) { return tensor.substr(0, tensor.rfind('.')); }

namespace ops {

namespace {

constexpr const char* kExternal = "External";

using ExternalSpecs = std::span<const TensorSpec>;

/// An entry of `outputs`: "y", which is of the shape of x, or "y = [x.0, 4096]", or "y = [x.0] i64".
struct DeclaredOutput {
  std::string name;
  std::optional<std::string> shape;  // without the brackets
  std::optional<DType> dtype = {};
};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Commas within brackets and parentheses divide nothing.
std::vector<std::string_view> entriesOf(std::string_view text) {
  std::vector<std::string_view> entries;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if (text[i] == ']' || text[i] == ')') --depth;
    if (text[i] != ',' || depth > 0) continue;
    entries.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  entries.push_back(trimmed(text.substr(begin)));
  return entries;
}

Error errorOf(const char* attribute, const std::string& message) {
  return {.message = fmt::format("{}: {}: {}", kExternal, attribute, message), .subject = attribute};
}

bool isPortName(std::string_view name) {
  const auto isPart = [](unsigned char c) { return c < 0x80 && (std::isalnum(c) != 0 || c == '_'); };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::ranges::all_of(name, isPart);
}

/// Ports of both kinds have different names, because tensors are named after them.
std::optional<Error> takeName(const char* attribute, std::string_view name, std::vector<std::string>& taken) {
  if (!isPortName(name))
    return errorOf(attribute,
                   fmt::format("\"{}\" is not a name; a name is a letter or _, then letters, digits and _.", name));
  if (std::ranges::find(taken, name) != taken.end())
    return errorOf(attribute, fmt::format("{} is already taken; choose another name.", name));
  taken.emplace_back(name);
  return std::nullopt;
}

/// dtypes of tensors in graphs; quantized tensors never occur alone.
constexpr std::array kDTypes = {DType::F32, DType::F16, DType::BF16, DType::I64};

std::vector<std::string_view> dtypeNames() {
  std::vector<std::string_view> names;
  for (const DType dtype : kDTypes) names.push_back(dtypeName(dtype));
  return names;
}

std::optional<DType> declaredDType(std::string_view name) {
  const std::optional<DType> dtype = parseDType(name);
  return dtype && std::ranges::find(kDTypes, *dtype) != kDTypes.end() ? dtype : std::nullopt;
}

Result<DeclaredOutput> parseOutput(std::string_view entry) {
  const auto equals = entry.find('=');
  DeclaredOutput output{.name = std::string(trimmed(entry.substr(0, equals))), .shape = std::nullopt};
  if (equals == std::string_view::npos) return output;
  const std::string_view shape = trimmed(entry.substr(equals + 1));
  const std::size_t end = shape.rfind(']');
  if (!shape.starts_with('[') || end == std::string_view::npos)
    return errorOf("outputs", fmt::format("the shape of {} is \"{}\"; expected one in brackets, such as [x.0, 4096].",
                                          output.name, shape));
  output.shape = shape.substr(1, end - 1);
  const std::string_view dtype = trimmed(shape.substr(end + 1));
  if (dtype.empty()) return output;
  output.dtype = declaredDType(dtype);
  if (output.dtype) return output;
  return errorOf("outputs", fmt::format("the dtype of {} is \"{}\"; expected one of {}, or none, which is that of x.",
                                        output.name, dtype, fmt::join(dtypeNames(), ", ")));
}

Result<std::vector<DeclaredOutput>> parseOutputs(const std::string& text, std::vector<std::string>& taken) {
  std::vector<DeclaredOutput> outputs;
  for (const std::string_view entry : entriesOf(text)) {
    Result<DeclaredOutput> output = parseOutput(entry);
    if (!output) return output.error();
    if (auto error = takeName("outputs", output->name, taken)) return *error;
    outputs.push_back(std::move(*output));
  }
  return outputs;
}

Result<std::vector<std::string>> parseInputs(const std::string& text, std::vector<std::string>& taken) {
  std::vector<std::string> inputs = {"x"};
  taken.emplace_back("x");
  if (trimmed(text).empty()) return inputs;
  for (const std::string_view name : entriesOf(text)) {
    if (auto error = takeName("inputs", name, taken)) return *error;
    inputs.emplace_back(name);
  }
  return inputs;
}

// ---- shapes

/// The extents with their names in a formula: "x_0" for "x.0".
FormulaNames extentNames(const std::vector<std::string>& inputs, ExternalSpecs specs) {
  FormulaNames names;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t axis = 0; axis < specs[i].shape.size(); ++axis)
      names.constants.emplace_back(fmt::format("{}_{}", inputs[i], axis), static_cast<double>(specs[i].shape[axis]));
  return names;
}

/// "k1_0" for "k1.0", where a name precedes the dot and not a number.
std::string asFormula(std::string text) {
  std::size_t begin = 0;  // of the current name or number
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const auto isDigit = [&](std::size_t at) { return std::isdigit(static_cast<unsigned char>(text[at])) != 0; };
    if (text[i] == '.' && i > begin && !isDigit(begin) && isDigit(i + 1)) text[i] = '_';
    if (std::isalnum(static_cast<unsigned char>(text[i])) == 0 && text[i] != '_') begin = i + 1;
  }
  return text;
}

Result<std::int64_t> extent(std::string_view text, const FormulaNames& names) {
  constexpr double kMostExact = 9007199254740992.0;  // 2^53: a double counts exactly up to there
  FormulaExpression expression;
  const Result<Term> term = parseFormula(asFormula(std::string(text)), names, expression);
  if (!term) return errorOf("outputs", fmt::format("in \"{}\", {}", text, term.error().message));
  const std::optional<double> value = expression.constantValue(*term);
  if (value && *value >= 0 && *value <= kMostExact && std::floor(*value) == *value)
    return static_cast<std::int64_t>(*value);
  return errorOf("outputs", fmt::format("\"{}\" is {}; a dimension must be a whole number of 0 or more.", text,
                                        value ? fmt::format("{}", *value) : "not known"));
}

Result<TensorSpec> specOf(const DeclaredOutput& output, const std::vector<std::string>& inputs, ExternalSpecs specs) {
  if (!output.shape) return specs[0];
  TensorSpec spec{.dtype = output.dtype.value_or(specs[0].dtype), .shape = {}};
  if (trimmed(*output.shape).empty()) return spec;
  const FormulaNames names = extentNames(inputs, specs);
  for (const std::string_view text : entriesOf(*output.shape)) {
    const Result<std::int64_t> found = extent(text, names);
    if (!found) return found.error();
    spec.shape.push_back(*found);
  }
  return spec;
}

Result<OperationSpecs> inferShapes(const std::vector<std::string>& inputs, const std::vector<DeclaredOutput>& outputs,
                                   ExternalSpecs specs) {
  OperationSpecs found;
  for (const DeclaredOutput& output : outputs) {
    Result<TensorSpec> spec = specOf(output, inputs, specs);
    if (!spec) return spec.error();
    found.outputs.push_back(std::move(*spec));
  }
  return found;
}

// ---- the op

AttributeSpec textAttribute(const char* name, const char* value, const char* help) {
  return {.name = name, .type = AttributeType::Text, .defaultValue = std::string(value), .help = help};
}

std::vector<AttributeSpec> externalAttributes() {
  std::vector<AttributeSpec> attributes = {
      textAttribute("inputs", "", "Names of further inputs, such as \"k, v\"."),
      textAttribute("outputs", "y",
                    "Outputs, with shapes: \"y = [x.0, 4096], lse = [H, x.1 / 2] f32\". x.0 is the first dimension of "
                    "input x; symbols of the file may be used. Without a shape or dtype it is that of x."),
      textAttribute("module", "",
                    "Python expression that creates the module in the export to TransformerEngine, such as "
                    "\"te.DotProductAttention({H / D}, {D})\", with expressions of the file's symbols in braces. It is "
                    "called with the inputs in the order of the ports."),
      textAttribute("description", "", "Description of the computation, for readers."),
      textAttribute("nodes", "",
                    "ONNX nodes that it replaces, stored by an import: a ModelProto in base64. The export to ONNX "
                    "writes them again."),
  };
  attributes[1].unit = kExtentsUnit;
  return attributes;
}

std::vector<Port> inputPorts(const std::vector<std::string>& names) {
  std::vector<Port> ports;
  for (const std::string& name : names) ports.push_back({name, "[...]", "Any shape and dtype.", PortElements::Any});
  return ports;
}

std::vector<Port> outputPorts(const std::vector<DeclaredOutput>& outputs) {
  std::vector<Port> ports;
  for (const DeclaredOutput& output : outputs)
    ports.push_back({output.name, "[...]", "Shape and dtype as given in outputs."});
  return ports;
}

Result<FusibleOperation> externalFor(const Attributes& given) {
  std::vector<std::string> taken;
  Result<std::vector<std::string>> inputs = parseInputs(given.text("inputs"), taken);
  if (!inputs) return inputs.error();
  Result<std::vector<DeclaredOutput>> outputs = parseOutputs(given.text("outputs"), taken);
  if (!outputs) return outputs.error();
  return FusibleOperation{
      .name = kExternal,
      .category = "Structure",
      .summary = "Placeholder for an op that Fuseline does not have: it has shapes, but is not executed.",
      .formula = "y = what the module computes",
      .derivative = "dx = what the module's backward computes",
      .source = "Defined by its attributes; Fuseline has no kernel for it",
      .details =
          "No fusion crosses it. Its inputs become outputs of the pipeline, with random gradients from the seed; its "
          "outputs\nbecome inputs filled with random values from the seed. It is not included in any timing.\n",
      .keywords = {"attention", "custom", "own", "opaque", "module", "placeholder", "unknown"},
      .inputs = inputPorts(*inputs),
      .outputs = outputPorts(*outputs),
      .attributes = externalAttributes(),
      .infer = [inputs = *inputs, outputs = *outputs](
                   const Attributes&, ExternalSpecs specs) { return inferShapes(inputs, outputs, specs); },
      .expand = [](const Attributes&) { return std::vector<ExpandedOperation>(); },
  };
}

}  // namespace

CompositeOperation external() {
  Result<FusibleOperation> op = externalFor(defaultAttributes({.attributes = externalAttributes()}));
  op->specialise = [](const FusibleOperation&, const Attributes& given) { return externalFor(given); };
  return std::move(*op);
}

}  // namespace ops
}  // namespace fuseline
