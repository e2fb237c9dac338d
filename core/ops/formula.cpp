// A user-defined elementwise op: y = an expression of x, of further inputs, of learned values and of named numbers. Its
// gradients are derived from the expression.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/formula_parser.h"
#include "core/ops/offload.h"
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::ops {

namespace {
namespace formula_parts {

constexpr const char* kName = "Formula";
constexpr const char* kDefault = "x * sigmoid(1.702 * x)";
constexpr std::size_t kMostNames = 16;
/// Limit of the formula with its derivatives. Programs of this length compile at once and stay in the cache.
constexpr std::size_t kMostTerms = 4000;

/// A variable of the formula. Variable 0 is x.
struct Variable {
  std::string name;
  OperandKind kind = OperandKind::Input;
  int slot = 0;
  bool isScalar = false;  // a parameter of one element
  double initial = 0.0;
  // Where it is declared.
  const char* attribute = "y";
  int column = 1;

  bool isInput() const { return kind == OperandKind::Input; }
  SavedTensor key() const { return {kind, slot}; }
};

/// The formula that the attributes describe.
struct Formula {
  std::string text;
  std::vector<Variable> variables;
  FormulaExpression expression;
  Term y = 0;
  std::vector<Term> slopes;  // of y, by variable
};
using FormulaPointer = std::shared_ptr<const Formula>;

std::size_t numOf(const Formula& formula, OperandKind kind) {
  return static_cast<std::size_t>(std::ranges::count(formula.variables, kind, &Variable::kind));
}

std::vector<std::string> namesOf(const Formula& formula) {
  std::vector<std::string> names;
  for (const Variable& variable : formula.variables) names.push_back(variable.name);
  return names;
}

// ---- from attributes

const std::string& textOf(const Attributes& attributes, std::string_view name) {
  static const std::string empty;
  return attributes.has(name) ? attributes.text(name) : empty;
}

/// "Formula: y, column 5: ..."
Error errorIn(const char* attribute, const Error& error) {
  return {.message = fmt::format("{}: {}, {}", kName, attribute, error.message), .subject = attribute};
}

/// The names that an attribute declares. All of them are added to `taken`.
Result<std::vector<DeclaredName>> declared(const Attributes& attributes, const char* attribute, EntryForm form,
                                           std::vector<std::string>& taken) {
  Result<std::vector<DeclaredName>> names = parseNames(textOf(attributes, attribute), form);
  if (!names) return errorIn(attribute, names.error());
  for (const DeclaredName& name : *names) {
    if (auto error = checkFormulaName(name, taken)) return errorIn(attribute, *error);
    taken.push_back(name.name);
  }
  if (names->size() <= kMostNames) return names;
  return errorIn(attribute, Error{fmt::format("column {}: there are {} names; at most {} are possible.",
                                              (*names)[kMostNames].column, names->size(), kMostNames)});
}

void addVariables(Formula& formula, const std::vector<DeclaredName>& names, OperandKind kind, const char* attribute) {
  for (const DeclaredName& name : names)
    formula.variables.push_back({.name = name.name,
                                 .kind = kind,
                                 .slot = static_cast<int>(numOf(formula, kind)),
                                 .isScalar = name.isScalar,
                                 .initial = name.value.value_or(0.0),
                                 .attribute = attribute,
                                 .column = name.column});
}

/// An unused name is usually a typing error; and an unused input would be an operand without use in any kernel.
std::optional<Error> checkUse(const Formula& formula) {
  const std::vector<int> used = formula.expression.variablesOf(formula.y);
  for (int i = 0; i < static_cast<int>(formula.variables.size()); ++i) {
    const Variable& variable = formula.variables[static_cast<std::size_t>(i)];
    if (std::ranges::find(used, i) != used.end()) continue;
    const char* const hint = i == 0 ? "; it must." : "; use it or remove it here.";
    return errorIn(variable.attribute, Error{fmt::format("column {}: the formula does not depend on {}{}",
                                                         variable.column, variable.name, hint)});
  }
  return std::nullopt;
}

std::optional<Error> parse(Formula& formula, const std::vector<DeclaredName>& constants) {
  FormulaNames names{.variables = namesOf(formula)};
  for (const DeclaredName& constant : constants) names.constants.emplace_back(constant.name, *constant.value);
  const Result<Term> y = parseFormula(formula.text, names, formula.expression);
  if (!y) return errorIn("y", y.error());
  formula.y = *y;
  if (auto error = checkUse(formula)) return error;
  for (int variable = 0; variable < static_cast<int>(formula.variables.size()); ++variable)
    formula.slopes.push_back(formula.expression.derivative(formula.y, variable));
  if (formula.expression.numTerms() <= kMostTerms) return std::nullopt;
  return errorIn("y", Error{fmt::format("column 1: with its derivatives the formula has {} operations; at most {} are "
                                        "possible. Split it into several ops.",
                                        formula.expression.numTerms(), kMostTerms)});
}

Result<FormulaPointer> formulaOf(const Attributes& attributes) {
  std::vector<std::string> taken;
  const auto inputs = declared(attributes, "inputs", EntryForm::Name, taken);
  if (!inputs) return inputs.error();
  const auto parameters = declared(attributes, "parameters", EntryForm::NameWithNumber, taken);
  if (!parameters) return parameters.error();
  const auto constants = declared(attributes, "constants", EntryForm::NameAndNumber, taken);
  if (!constants) return constants.error();

  const auto formula = std::make_shared<Formula>();
  formula->text = textOf(attributes, "y");
  addVariables(*formula, {{.name = "x", .column = 1}}, OperandKind::Input, "y");
  addVariables(*formula, *inputs, OperandKind::Input, "inputs");
  addVariables(*formula, *parameters, OperandKind::Parameter, "parameters");
  if (auto error = parse(*formula, *constants)) return *error;
  return FormulaPointer(formula);
}

// ---- inference and cost

/// A parameter has a value for each column of x, or one for all.
Shape parameterShape(const Variable& parameter, const TensorSpec& x) { return {parameter.isScalar ? 1 : x.cols()}; }

Result<OperationSpecs> inferSpecs(const Formula& formula, const Attributes& attributes, Specs inputs) {
  const TensorSpec& x = inputs[0];
  const DType parameterType = parameterDType(attributes, x);
  OperationSpecs specs{.outputs = {x}};
  DType& dtype = specs.outputs[0].dtype;
  for (const Variable& variable : formula.variables) {
    if (!variable.isInput()) {
      specs.parameters.push_back({.dtype = parameterType, .shape = parameterShape(variable, x)});
      dtype = promoted(dtype, parameterType);
      continue;
    }
    const TensorSpec& input = inputs[static_cast<std::size_t>(variable.slot)];
    if (input.shape != x.shape)
      return Error{fmt::format("{}: {} has the shape {}, but x has the shape {}; both must be the same.", kName,
                               variable.name, toString(input.shape), toString(x.shape))};
    dtype = promoted(dtype, input.dtype);
  }
  return specs;
}

FlopCount countFlops(const Formula& formula, std::int64_t elements) {
  const FormulaExpression& expression = formula.expression;
  FlopCount each{.forward = expression.numOperations(std::span(&formula.y, 1)),
                 .backward = expression.numOperations(formula.slopes)};
  for (std::size_t i = 0; i < formula.slopes.size(); ++i) {
    const auto value = expression.constantValue(formula.slopes[i]);
    if (value != 0.0 && value != 1.0) ++each.backward;                     // times dy
    if (value != 0.0 && !formula.variables[i].isInput()) ++each.backward;  // added to the sum
  }
  return {.forward = each.forward * elements, .backward = each.backward * elements};
}

// ---- reference

/// The value of a variable at an element of x.
double valueAt(const Variable& variable, const ReferenceTensor& tensor, std::size_t element) {
  if (variable.isInput()) return tensor.values[element];
  return tensor.values[element % tensor.values.size()];
}

/// The terms up to `last`, element by element. tensors: by variable, nullptr reads as 0. use(element, values).
template <class Use>
void forEachElement(const Formula& formula, const std::vector<const ReferenceTensor*>& tensors, std::size_t numElements,
                    std::size_t numTerms, Use use) {
  std::vector<double> variables(tensors.size());
  std::vector<double> values(numTerms);
  for (std::size_t element = 0; element < numElements; ++element) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      variables[i] = tensors[i] ? valueAt(formula.variables[i], *tensors[i], element) : 0.0;
    formula.expression.evaluate(variables, values);
    use(element, values);
  }
}

ReferenceForward forward(const Formula& formula, References inputs, References parameters) {
  std::vector<const ReferenceTensor*> tensors;
  for (const Variable& variable : formula.variables)
    tensors.push_back(&(variable.isInput() ? inputs : parameters)[static_cast<std::size_t>(variable.slot)]);
  ReferenceTensor y = referenceZeros(inputs[0].shape);
  forEachElement(formula, tensors, y.values.size(), static_cast<std::size_t>(formula.y) + 1,
                 [&](std::size_t element, const std::vector<double>& values) { y.values[element] = values.back(); });
  return {.outputs = {std::move(y)}};
}

ReferenceBackward backward(const Formula& formula, const SavedValues& saved, const ReferenceTensor& dy) {
  std::vector<const ReferenceTensor*> tensors;
  ReferenceBackward gradients;
  for (const Variable& variable : formula.variables) {
    const bool isSaved = saved.has(variable.key());
    tensors.push_back(!isSaved             ? nullptr
                      : variable.isInput() ? &saved.input(variable.slot)
                                           : &saved.parameter(variable.slot));
    if (variable.isInput())
      gradients.inputs.push_back(referenceZeros(dy.shape));
    else
      gradients.parameters.push_back(referenceZeros({variable.isScalar ? 1 : dy.cols()}));
  }
  const auto add = [&](std::size_t element, const std::vector<double>& values) {
    for (std::size_t i = 0; i < formula.variables.size(); ++i) {
      const Variable& variable = formula.variables[i];
      std::vector<double>& gradient =
          (variable.isInput() ? gradients.inputs : gradients.parameters)[static_cast<std::size_t>(variable.slot)]
              .values;
      gradient[element % gradient.size()] += dy.values[element] * values[static_cast<std::size_t>(formula.slopes[i])];
    }
  };
  forEachElement(formula, tensors, dy.values.size(), formula.expression.numTerms(), add);
  return gradients;
}

/// The tensors read by the requested derivatives.
OperationContext saveContext(const Formula& formula, const GradientNeeds& needs) {
  std::set<int> read;
  for (std::size_t i = 0; i < formula.variables.size(); ++i) {
    const Variable& variable = formula.variables[i];
    const auto slot = static_cast<std::size_t>(variable.slot);
    if (!(variable.isInput() ? needs.inputs : needs.parameters)[slot]) continue;
    const std::vector<int> variables = formula.expression.variablesOf(formula.slopes[i]);
    read.insert(variables.begin(), variables.end());
  }
  OperationContext context;
  for (const int variable : read)
    context.tensors.push_back(formula.variables[static_cast<std::size_t>(variable)].key());
  return context;
}

// ---- programs

ValueIndex load(ElementwiseBuilder& e, const Variable& variable) {
  if (variable.isInput()) return e.input(variable.slot);
  return variable.isScalar ? e.parameterScalar(variable.slot) : e.parameterRow(variable.slot);
}

std::vector<ValueIndex> emit(ElementwiseBuilder& e, const Formula& formula, std::span<const Term> terms) {
  return formula.expression.emit(
      e, terms, [&](int variable) { return load(e, formula.variables[static_cast<std::size_t>(variable)]); });
}

void storeGradient(ElementwiseBuilder& e, const Variable& variable, ValueIndex gradient) {
  if (variable.isInput()) return e.gradInput(variable.slot, gradient);
  if (variable.isScalar) return e.gradParameterSum(variable.slot, gradient);
  e.gradParameterColumnSum(variable.slot, gradient);
}

void defineBackward(ElementwiseBuilder& e, const Formula& formula) {
  const ValueIndex dy = e.gradOutput();
  const std::vector<ValueIndex> slopes = emit(e, formula, formula.slopes);
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    const bool isOne = formula.expression.constantValue(formula.slopes[i]) == 1.0;
    storeGradient(e, formula.variables[i], isOne ? dy : e.mul(dy, slopes[i]));
  }
}

// ---- the op

std::string derivativeText(const Formula& formula) {
  const std::vector<std::string> names = namesOf(formula);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < formula.variables.size(); ++i) {
    const Variable& variable = formula.variables[i];
    const Term slope = formula.slopes[i];
    const std::string text = formula.expression.text(slope, names);
    const auto value = formula.expression.constantValue(slope);
    const std::string gradient = value == 1.0 ? "dy" : value == 0.0 ? "0" : fmt::format("dy * ({})", text);
    const char* const sum = variable.isInput() ? "" : variable.isScalar ? ", summed" : ", summed over all rows";
    parts.push_back(fmt::format("d{} = {}{}", variable.name, gradient, sum));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<Port> inputsOf(const Formula& formula) {
  const bool hasColumns = std::ranges::any_of(
      formula.variables, [](const Variable& variable) { return !variable.isInput() && !variable.isScalar; });
  const std::string shape = hasColumns ? "[..., H]" : "[...]";
  std::vector<Port> ports;
  for (const Variable& variable : formula.variables)
    if (variable.isInput()) ports.push_back({variable.name, shape, "Same shape as x."});
  ports.front().help = "Any shape.";
  return ports;
}

std::vector<ParameterSpec> parametersOf(const Formula& formula) {
  std::vector<ParameterSpec> parameters;
  for (const Variable& variable : formula.variables)
    if (!variable.isInput())
      parameters.push_back({variable.name, variable.isScalar ? "[1]" : "[H]",
                            variable.isScalar ? "One number for all elements." : "A number for each column.",
                            [value = variable.initial](const Attributes&, const TensorSpec&) {
                              return Initialisation{.value = value};
                            }});
  return parameters;
}

AttributeSpec text(const char* name, const char* value, const char* help) {
  return {.name = name, .type = AttributeType::Text, .defaultValue = std::string(value), .help = help};
}

std::vector<AttributeSpec> attributes() {
  return {
      text("y", kDefault, "The formula, of x and of the names below. `fuseline ops Formula` explains the language."),
      text("inputs", "", "Names of further inputs, of the shape of x, such as \"b, mask\"."),
      text("parameters", "",
           "Names of learned values with their initial values, such as \"alpha = 0.25, beta[1] = 1\": a vector [H], H "
           "the last axis of x, or with [1] a single number. Without a value they start at 0."),
      text("constants", "", "Names of numbers, such as \"limit = 7, slope = 1.702\"."),
      dtypeAttribute(),
      booleanAttribute("requires_grad", true, "Off: its parameters are frozen; their gradients are not computed."),
      offloadAttribute(),
  };
}

void setMathematics(BasicOperation& op, const FormulaPointer& formula) {
  op.infer = [formula](const Attributes& given, Specs inputs) { return inferSpecs(*formula, given, inputs); };
  op.flops = [formula](const Attributes&, Specs inputs) { return countFlops(*formula, inputs[0].numElements()); };
  op.forwardCompute = [formula](const Attributes&, References inputs, References parameters) {
    return forward(*formula, inputs, parameters);
  };
  op.saveContext = [formula](const SaveArguments& arguments) { return saveContext(*formula, arguments.needs); };
  op.backwardCompute = [formula](const Attributes&, const SavedValues& saved, References gradOutputs) {
    return backward(*formula, saved, gradOutputs[0]);
  };
  op.elementwise.forward = [formula](ElementwiseBuilder& e, const Attributes&) {
    e.output(0, emit(e, *formula, std::span(&formula->y, 1)).front());
  };
  op.elementwise.backward = [formula](ElementwiseBuilder& e, const Attributes&) { defineBackward(e, *formula); };
}

Result<FusibleOperation> specialise(const Attributes& given) {
  const Result<FormulaPointer> formula = formulaOf(given);
  if (!formula) return formula.error();
  BasicOperation op{
      .name = kName,
      .category = "Elementwise",
      .summary = "Computes your own formula for every element; its gradients are derived from it.",
      .formula = "y = " + (*formula)->text,
      .derivative = derivativeText(**formula),
      .source = "The formula; its derivatives by the rules of calculus, 0 at the kinks of max, min, abs and relu",
      .details = formulaHelp(),
      .keywords = {"expression", "custom", "own", "activation", "function", "math", "elementwise", "code"},
      .inputs = inputsOf(**formula),
      .parameters = parametersOf(**formula),
      .outputs = {{"y", inputsOf(**formula).front().shape,
                   "The shape of x, in the common dtype of inputs and parameters; f32 where they differ."}},
      .attributes = attributes(),
  };
  setMathematics(op, *formula);
  return op;
}

}  // namespace formula_parts
}  // namespace

BasicOperation formula() {
  using namespace formula_parts;
  return structuredOperation(attributes(), specialise);
}

}  // namespace fuseline::ops
