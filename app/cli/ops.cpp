// fuseline ops: the op library, derived from the catalog.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/fusion/operation_cost.h"
#include "core/fusion/rule_text.h"
#include "core/ops/catalog.h"
#include "core/support/field_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

/// A port or a parameter.
template <class Named>
static FieldTable<Named> portFields() {
  return FieldTable<Named>({field("name", &Named::name, "Name of the port."),
                            field("shape", &Named::shape, "Shape, in symbols."),
                            field("help", &Named::help, "Meaning of the tensor.")});
}

static const FieldTable<Port>& fieldsOf(const Port*) {
  static const FieldTable<Port> table = portFields<Port>();
  return table;
}

static const FieldTable<ParameterSpec>& fieldsOf(const ParameterSpec*) {
  static const FieldTable<ParameterSpec> table = portFields<ParameterSpec>();
  return table;
}

static const FieldTable<Work>& fieldsOf(const Work*) {
  static const FieldTable<Work> table({field("flops", &Work::flops, "Floating-point operations."),
                                       field("bytes", &Work::bytes, "Minimum memory traffic.")});
  return table;
}

/// The cost of an op on its sample input.
struct SampledCost {
  TensorSpec x;
  OperationCost cost;
};

static const FieldTable<SampledCost>& fieldsOf(const SampledCost*) {
  static const FieldTable<SampledCost> table(
      {derived<SampledCost>(
           "x", [](const SampledCost& sampled) { return toString(sampled.x); }, "Input that was assumed."),
       derived<SampledCost>("forward", [](const SampledCost& sampled) { return sampled.cost.forward; }),
       derived<SampledCost>("backward", [](const SampledCost& sampled) { return sampled.cost.backward; })});
  return table;
}

}  // namespace fuseline

namespace fuseline::cli {

namespace {
namespace ops_parts {

struct OpsOptions {
  std::string name;
  bool asJson = false;
};

std::string rangeText(const AttributeSpec& attribute) {
  std::vector<std::string> parts;
  if (attribute.minimum) parts.push_back(fmt::format("at least {}", *attribute.minimum));
  if (attribute.maximum) parts.push_back(fmt::format("at most {}", *attribute.maximum));
  if (!attribute.choices.empty()) parts.push_back(fmt::format("one of {}", fmt::join(attribute.choices, ", ")));
  if (!attribute.unit.empty()) parts.push_back("in " + attribute.unit);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string defaultText(const AttributeSpec& attribute) {
  if (attribute.isRequired()) return "required";
  const std::string value = toString(attribute.defaultValue);
  return value.empty() ? "not set" : value;
}

std::vector<std::string> fusionsOf(const FusibleOperation& op) {
  std::vector<std::string> names;
  for (const FusionRule* rule : rulesFor(op)) names.push_back(rule->name);
  return names;
}

const FieldTable<AttributeSpec>& attributeFields() {
  using Spec = AttributeSpec;
  static const FieldTable<Spec> table(
      {field("name", &Spec::name, "Name in the pipeline file."),
       derived<Spec>(
           "type", [](const Spec& spec) { return typeName(spec.type); }, "Type of the value."),
       derived<Spec>("isRequired", &Spec::isRequired, "Whether the attribute has no default."),
       derived<Spec>(
           "default", [](const Spec& spec) { return toString(spec.defaultValue); }, "Empty: none."),
       derived<Spec>("range", rangeText, "Allowed values."), field("help", &Spec::help, "Effect of the attribute.")});
  return table;
}

Field<FusibleOperation> attributesField() {
  return {"attributes", schema::list(attributeFields().schema()), [](const FusibleOperation& op) {
            Json list = Json::array();
            for (const AttributeSpec& spec : op.attributes) list.push_back(attributeFields().toJson(spec));
            return list;
          }};
}

std::optional<SampledCost> sampledCost(const FusibleOperation& op) {
  const std::optional<OperationCost> cost = sampleCost(op);
  return cost ? std::optional(SampledCost{sampleInput(op), *cost}) : std::nullopt;
}

const FieldTable<FusibleOperation>& operationFields() {
  using Op = FusibleOperation;
  static const FieldTable<Op> table(
      {field("name", &Op::name, "Name in the pipeline file."),
       field("category", &Op::category, "Group in the palette."),
       field("summary", &Op::summary, "Summary, one sentence."),
       field("formula", &Op::formula, "Formula of the forward pass."),
       field("derivative", &Op::derivative, "Formula of the backward pass."),
       field("source", &Op::source, "Source of the mathematics."),
       field("details", &Op::details, "Further remarks; usually empty."), derived<Op>("cost", sampledCost),
       derived<Op>("isComposite", &Op::isComposite, "Whether the op expands to several basic ops."),
       field("inputs", &Op::inputs), field("parameters", &Op::parameters), field("outputs", &Op::outputs),
       field("residuals", &Op::residuals), attributesField(), derived<Op>("fusions", fusionsOf)});
  return table;
}

Json toJson(const FusibleOperation& op) { return operationFields().toJson(op); }

Json opsSchema() { return schema::object({{"ops", schema::list(operationFields().schema())}}); }

void printList(Context& context) {
  Table table({{"op", Align::Left}, {"", Align::Left}});
  std::string category;
  for (const auto& op : builtinOperations().operations()) {
    if (op->category != category) table.addHeading(op->category);
    category = op->category;
    table.addRow({"  " + op->name, op->summary});
  }
  context.out << table.toString(context.hasColour);
}

void addTensorRows(Table& table, const FusibleOperation& op) {
  for (const Port& port : op.inputs) table.addRow({"  " + port.name, "input", port.shape, port.help});
  for (const ParameterSpec& parameter : op.parameters)
    table.addRow({"  " + parameter.name, "parameter", parameter.shape, parameter.help});
  for (const Port& port : op.outputs) table.addRow({"  " + port.name, "output", port.shape, port.help});
  for (const Port& port : op.residuals) table.addRow({"  " + port.name, "residual", port.shape, port.help});
}

void printAttributes(const FusibleOperation& op, Context& context) {
  if (op.attributes.empty()) return;
  Table table({{"attribute", Align::Left}, {"type", Align::Left}, {"default", Align::Left}, {"", Align::Left}});
  for (const AttributeSpec& attribute : op.attributes) {
    const std::string range = rangeText(attribute);
    table.addRow({"  " + attribute.name, std::string(typeName(attribute.type)), defaultText(attribute),
                  range.empty() ? attribute.help : fmt::format("{} ({})", attribute.help, range)});
  }
  context.out << '\n' << table.toString(context.hasColour);
}

void printFusions(const FusibleOperation& op, Context& context) {
  context.out << "\nfusions that can include it\n";
  const std::vector<const FusionRule*> rules = rulesFor(op);
  if (rules.empty()) context.out << "  none\n";
  for (const FusionRule* rule : rules) context.out << fmt::format("  {}: {}\n", rule->name, patternText(*rule));
}

void printDetails(const FusibleOperation& op, Context& context) {
  context.out << styled(op.name, Style::Bold, context.hasColour) << "  (" << op.category << ")\n" << op.summary << '\n';
  for (const auto& [label, text] :
       {std::pair{"formula", &op.formula}, {"derivative", &op.derivative}, {"source", &op.source}})
    if (!text->empty()) context.out << fmt::format("{:<10} {}\n", label, *text);
  if (const auto cost = sampleCost(op))
    context.out << fmt::format("{:<10} {}, with x {}\n", "cost", toString(*cost), toString(sampleInput(op)));
  if (!op.details.empty()) context.out << '\n' << op.details << '\n';
  context.out << '\n';
  Table tensors({{"tensor", Align::Left}, {"", Align::Left}, {"shape", Align::Left}, {"", Align::Left}});
  addTensorRows(tensors, op);
  context.out << tensors.toString(context.hasColour);
  printAttributes(op, context);
  printFusions(op, context);
}

Error unknownOp(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& op : builtinOperations().operations()) names.push_back(op->name);
  return unknownName("ops", "op", name, names);
}

Result<int> showAll(const OpsOptions& options, Context& context) {
  if (!options.asJson) {
    printList(context);
    return 0;
  }
  Json list = Json::array();
  for (const auto& op : builtinOperations().operations()) list.push_back(toJson(*op));
  printJson(context, {{"ops", list}});
  return 0;
}

Result<int> showOps(const OpsOptions& options, Context& context) {
  if (options.name.empty()) return showAll(options, context);
  const FusibleOperation* op = builtinOperations().find(options.name);
  if (!op) return unknownOp(options.name);
  if (options.asJson)
    printJson(context, {{"ops", Json::array({toJson(*op)})}});
  else
    printDetails(*op, context);
  return 0;
}

}  // namespace ops_parts
}  // namespace

void addOpsVerb(CLI::App& app, Context& context) {
  using namespace ops_parts;
  const auto options = std::make_shared<OpsOptions>();
  CLI::App* verb =
      addVerb(app, context, "ops",
              "List the op library; with a name, show the attributes, ports, formulas and references of one op.",
              options, showOps, opsSchema);
  verb->add_option("NAME", options->name, "An op");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
}

}  // namespace fuseline::cli
