// A linear transformation for each of several groups of rows, such as the experts of a mixture of experts.
// Rows are those of x as a matrix [M, K]; a group is a run of them, and the sizes of the groups are an input.
// SPDX-License-Identifier: Apache-2.0
#include "core/numerics/random.h"
#include "core/ops/grouped_form.h"
#include "core/ops/offload.h"
#include "core/ops/parameters.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace grouped_linear_parts {

constexpr const char* kName = "GroupedLinear";
constexpr int kSplitSizes = GroupedForm::kSplitSizes;
constexpr int kScales = GroupedForm::kScales;
/// Every group has separate parameters, by name. The largest mixtures of experts have about 500.
constexpr double kMostGroups = 4096;

// ---- inference and cost

void appendSpecs(const GroupedForm& form, const GroupedParameter& parameter, TensorSpec group,
                 std::vector<TensorSpec>& specs) {
  if (parameter.isSingle) group.shape.insert(group.shape.begin(), form.numGroups);
  specs.insert(specs.end(), static_cast<std::size_t>(parameter.numSlots), group);
}

std::optional<Error> checkInputs(const GroupedForm& form, const Attributes& attributes, Specs inputs) {
  const TensorSpec& x = inputs[0];
  if (auto error = checkLastAxis(kName, "in_features", attributes.integer("in_features"), x)) return error;
  if (form.isBiasScaled)
    if (auto error = checkScales(kName, x, inputs[kScales])) return error;
  const Shape& sizes = inputs[kSplitSizes].shape;
  if (sizes == Shape{form.numGroups}) return std::nullopt;
  return Error{
      fmt::format("{}: num_groups is {}, but split_sizes has the shape {}; it must have one size for each group, the "
                  "shape [{}].",
                  kName, form.numGroups, toString(sizes), form.numGroups)};
}

Result<OperationSpecs> infer(const Attributes& attributes, Specs inputs) {
  const GroupedForm form = groupedForm(attributes);
  if (auto error = checkInputs(form, attributes, inputs)) return *error;
  const std::int64_t N = attributes.integer("out_features");
  TensorSpec y{.dtype = parameterDType(attributes, inputs[0]), .shape = inputs[0].shape};
  y.shape.back() = N;
  OperationSpecs specs{.outputs = {y}};
  appendSpecs(form, form.weights, {y.dtype, {N, attributes.integer("in_features")}}, specs.parameters);
  if (form.hasBias()) appendSpecs(form, form.biases, {y.dtype, {N}}, specs.parameters);
  return specs;
}

FlopCount flops(const Attributes& attributes, Specs inputs) {
  const GroupedForm form = groupedForm(attributes);
  const std::int64_t elements = inputs[0].rows() * attributes.integer("out_features");
  const std::int64_t product = saturatedProduct(2 * attributes.integer("in_features"), elements);
  FlopCount count{.forward = product, .backward = 2 * product, .dgrad = product, .wgrad = product};
  if (!form.hasBias()) return count;
  count.forward += form.isBiasScaled ? 2 * elements : elements;
  count.backward += form.isBiasScaled ? 4 * elements : elements;  // a multiply-add for each of two gradients
  return count;
}

// ---- starting values

/// U(-1/sqrt(K), 1/sqrt(K)): Kaiming uniform with a = sqrt(5), for each group.
Initialisation initialiseWeight(const Attributes&, const TensorSpec& weight) {
  return {.kind = Initialisation::Kind::Uniform, .value = 1.0 / std::sqrt(static_cast<double>(weight.cols()))};
}

Initialisation initialiseBias(const Attributes&, const TensorSpec&) { return {}; }

/// The largest number of rows by which a recipe may ask groups to be cut, and by which these can be.
std::int64_t rowsOfCut(std::int64_t rows) {
  for (const std::int64_t unit : {128, 32, 16, 8})
    if (rows % unit == 0) return unit;
  return 1;
}

/// Where groups end, as a number from 0 to `units`.
std::vector<double> groupEnds(const DrawArguments& arguments, std::size_t numGroups, double units) {
  std::vector<double> ends(numGroups);
  if (const auto shares = groupShares(arguments.attributes, numGroups)) {
    std::partial_sum(shares->begin(), shares->end(), ends.begin());
    for (double& end : ends) end = std::round(end * units);
  } else {
    RandomStream(arguments.seed, arguments.name).uniforms(0, ends);
    for (double& end : ends) end = std::floor(end * (units + 1.0));
  }
  ends.back() = units;
  std::ranges::sort(ends);
  return ends;
}

/// Cuts the rows as the distribution says; groups may be empty.
Tensor drawSplitSizes(const DrawArguments& arguments) {
  const TensorSpec& spec = arguments.inputs[kSplitSizes];
  const std::int64_t rows = arguments.inputs[0].rows();
  const std::int64_t unit = rowsOfCut(rows);
  std::vector<double> sizes =
      groupEnds(arguments, static_cast<std::size_t>(spec.numElements()), static_cast<double>(rows / unit));
  std::adjacent_difference(sizes.begin(), sizes.end(), sizes.begin());
  for (double& size : sizes) size *= static_cast<double>(unit);
  return Tensor::fromDoubles(spec, sizes);
}

// ---- reference

/// Throws when the sizes do not divide the rows: they are known at run time only.
std::vector<RowGroup> groupsOf(const ReferenceTensor& splitSizes, std::int64_t rows) {
  std::vector<std::int64_t> sizes;
  for (const double size : splitSizes.values)
    sizes.push_back(static_cast<std::int64_t>(std::clamp(size, -0x1p62, 0x1p62)));  // more than any tensor has
  Result<std::vector<RowGroup>> groups = divideRows(sizes, rows);
  if (!groups) throw std::invalid_argument(groups.error().message);
  return std::move(*groups);
}

/// The rows of a group as a matrix.
ReferenceTensor rowsOf(const ReferenceTensor& tensor, const RowGroup& group) {
  const std::int64_t width = tensor.cols();
  const auto first = tensor.values.begin() + group.first * width;
  return {.shape = {group.size, width}, .values = {first, first + group.size * width}};
}

/// rows: [group.size, width].
void setRows(ReferenceTensor& tensor, const RowGroup& group, const ReferenceTensor& rows) {
  std::ranges::copy(rows.values, tensor.values.begin() + group.first * rows.cols());
}

int slotOf(const GroupedParameter& parameter, std::size_t group) {
  return parameter.firstSlot + (parameter.isSingle ? 0 : static_cast<int>(group));
}

/// A group's part of a parameter. tensor: the parameter at its slot.
ReferenceTensor partOf(const GroupedParameter& parameter, const ReferenceTensor& tensor, std::size_t group) {
  if (!parameter.isSingle) return tensor;
  const Shape shape(tensor.shape.begin() + 1, tensor.shape.end());
  const auto first = tensor.values.begin() + static_cast<std::ptrdiff_t>(group) * numElements(shape);
  return {.shape = shape, .values = {first, first + numElements(shape)}};
}

/// Each row of a group of the whole tensor, times its scale.
void scaleRows(ReferenceTensor& rows, const RowGroup& group, const ReferenceTensor& scales) {
  for (std::int64_t row = 0; row < group.size; ++row)
    for (double& value : referenceRow(rows, row, rows.cols()))
      value *= scales.values[static_cast<std::size_t>(group.first + row)];
}

/// The bias of every row of a group. scales: nullptr where it is not scaled.
ReferenceTensor biasRows(const ReferenceTensor& bias, const RowGroup& group, const ReferenceTensor* scales) {
  ReferenceTensor rows = referenceZeros({group.size, bias.cols()});
  for (std::int64_t row = 0; row < group.size; ++row)
    std::ranges::copy(bias.values, referenceRow(rows, row, rows.cols()).begin());
  if (scales) scaleRows(rows, group, *scales);
  return rows;
}

ReferenceForward forward(const Attributes& attributes, References inputs, References parameters) {
  const GroupedForm form = groupedForm(attributes);
  const auto part = [&](const GroupedParameter& parameter, std::size_t group) {
    return partOf(parameter, parameters[static_cast<std::size_t>(slotOf(parameter, group))], group);
  };
  Shape shape = inputs[0].shape;
  shape.back() = attributes.integer("out_features");
  ReferenceTensor y = referenceZeros(shape);
  const std::vector<RowGroup> groups = groupsOf(inputs[kSplitSizes], y.rows());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    ReferenceTensor rows = multiplyTransposed(rowsOf(inputs[0], groups[i]), part(form.weights, i));
    if (form.hasBias())
      rows = combined(rows, biasRows(part(form.biases, i), groups[i], form.isBiasScaled ? &inputs[kScales] : nullptr),
                      std::plus<>());
    setRows(y, groups[i], rows);
  }
  return {.outputs = {std::move(y)}};
}

void saveSlots(const GroupedParameter& parameter, OperationContext& context) {
  for (int slot = 0; slot < parameter.numSlots; ++slot)
    context.tensors.push_back({OperandKind::Parameter, parameter.firstSlot + slot});
}

bool needsAnyOf(const GradientNeeds& needs, const GroupedParameter& parameter) {
  const auto first = needs.parameters.begin() + parameter.firstSlot;
  return std::find(first, first + parameter.numSlots, true) != first + parameter.numSlots;
}

/// The weights for dx, x for dW, the biases for dscales, the scales for db; the sizes for all of them.
OperationContext saveContext(const SaveArguments& arguments) {
  const GroupedForm form = groupedForm(arguments.attributes);
  const GradientNeeds& needs = arguments.needs;
  OperationContext context;
  if (!needs.anyInput() && !needs.anyParameter()) return context;
  context.tensors.push_back({OperandKind::Input, kSplitSizes});
  if (needs.inputs[0]) saveSlots(form.weights, context);
  if (needsAnyOf(needs, form.weights)) context.tensors.push_back({OperandKind::Input, 0});
  if (!form.isBiasScaled) return context;
  if (needs.inputs[kScales]) saveSlots(form.biases, context);
  if (needsAnyOf(needs, form.biases)) context.tensors.push_back({OperandKind::Input, kScales});
  return context;
}

/// Inputs of the gradients.
class BackwardTask {
 public:
  BackwardTask(const Attributes& attributes, const SavedValues& saved, const ReferenceTensor& dy)
      : m_form(groupedForm(attributes)),
        m_saved(saved),
        m_dy(dy),
        m_groups(groupsOf(saved.input(kSplitSizes), dy.rows())) {}

  /// A gradient whose operand was not saved is not requested and stays empty.
  ReferenceBackward run(std::int64_t K) const {
    ReferenceBackward gradients;
    gradients.inputs.resize(m_form.isBiasScaled ? 3 : 2);
    gradients.parameters.resize(static_cast<std::size_t>(m_form.weights.numSlots + m_form.biases.numSlots));
    const bool hasScales = m_form.isBiasScaled && m_saved.has({OperandKind::Input, kScales});
    if (isSaved(m_form.weights)) gradients.inputs[0] = inputGradient(K);
    if (m_saved.has({OperandKind::Input, 0})) addWeightGradients(gradients.parameters);
    if (m_form.hasBias() && hasScales == m_form.isBiasScaled) addBiasGradients(gradients.parameters);
    if (m_form.isBiasScaled && isSaved(m_form.biases)) gradients.inputs[kScales] = scaleGradient();
    return gradients;
  }

 private:
  bool isSaved(const GroupedParameter& parameter) const {
    return m_saved.has({OperandKind::Parameter, parameter.firstSlot});
  }

  ReferenceTensor savedPart(const GroupedParameter& parameter, std::size_t group) const {
    return partOf(parameter, m_saved.parameter(slotOf(parameter, group)), group);
  }

  ReferenceTensor inputGradient(std::int64_t K) const {
    Shape shape = m_dy.shape;
    shape.back() = K;
    ReferenceTensor dx = referenceZeros(shape);
    for (std::size_t i = 0; i < m_groups.size(); ++i)
      setRows(dx, m_groups[i], multiply(rowsOf(m_dy, m_groups[i]), savedPart(m_form.weights, i)));
    return dx;
  }

  void addWeightGradients(std::vector<ReferenceTensor>& gradients) const {
    for (std::size_t i = 0; i < m_groups.size(); ++i)
      addPart(m_form.weights, i, outerProductSum(rowsOf(m_dy, m_groups[i]), rowsOf(m_saved.input(), m_groups[i])),
              gradients);
  }

  void addBiasGradients(std::vector<ReferenceTensor>& gradients) const {
    for (std::size_t i = 0; i < m_groups.size(); ++i) {
      ReferenceTensor dy = rowsOf(m_dy, m_groups[i]);
      if (m_form.isBiasScaled) scaleRows(dy, m_groups[i], m_saved.input(kScales));
      addPart(m_form.biases, i, columnSums(dy), gradients);
    }
  }

  ReferenceTensor scaleGradient() const {
    ReferenceTensor dscales = referenceZeros(Shape(m_dy.shape.begin(), m_dy.shape.end() - 1));
    for (std::size_t i = 0; i < m_groups.size(); ++i) {
      ReferenceTensor bias = savedPart(m_form.biases, i);
      bias.shape.insert(bias.shape.begin(), 1);
      setRows(dscales, m_groups[i], multiplyTransposed(rowsOf(m_dy, m_groups[i]), bias));
    }
    return dscales;
  }

  /// The groups come in order, so that the gradient of a parameter of all groups grows by one entry each.
  void addPart(const GroupedParameter& parameter, std::size_t group, const ReferenceTensor& part,
               std::vector<ReferenceTensor>& gradients) const {
    ReferenceTensor& gradient = gradients[static_cast<std::size_t>(slotOf(parameter, group))];
    gradient.shape = part.shape;
    if (parameter.isSingle) gradient.shape.insert(gradient.shape.begin(), m_form.numGroups);
    gradient.values.insert(gradient.values.end(), part.values.begin(), part.values.end());
  }

  GroupedForm m_form;
  const SavedValues& m_saved;
  const ReferenceTensor& m_dy;
  std::vector<RowGroup> m_groups;
};

ReferenceBackward backward(const Attributes& attributes, const SavedValues& saved, References gradOutputs) {
  return BackwardTask(attributes, saved, gradOutputs[0]).run(attributes.integer("in_features"));
}

// ---- the op

std::vector<Port> inputsOf(const GroupedForm& form) {
  std::vector<Port> inputs = {
      {"x", "[..., K]", "K is in_features. Its rows are those of all groups, one after another."},
      {.name = "split_sizes",
       .shape = "[G]",
       .help = "Rows of each group, i64; a group may be empty. Their sum is the number of rows "
               "of x. Not given: drawn from distribution, in multiples of 128, 32, 16 or 8 rows if possible.",
       .elements = PortElements::Counts,
       .draw = drawSplitSizes}};
  if (form.isBiasScaled)
    inputs.push_back({"scales", "[...]", "Scale of the bias for each row, such as a router's probability."});
  return inputs;
}

/// "weight0", "weight1" ..., or "weight" for all groups.
void appendParameters(const GroupedParameter& parameter, const ParameterSpec& group,
                      std::vector<ParameterSpec>& parameters) {
  for (std::int64_t i = 0; i < parameter.numSlots; ++i) {
    parameters.push_back(group);
    if (parameter.isSingle)
      parameters.back().shape.insert(1, "G, ");
    else
      parameters.back().name += std::to_string(i);
  }
}

std::vector<ParameterSpec> parametersOf(const GroupedForm& form) {
  std::vector<ParameterSpec> parameters;
  appendParameters(form.weights, {"weight", "[N, K]", "One row for each output feature.", initialiseWeight, true},
                   parameters);
  if (form.hasBias())
    appendParameters(form.biases, {"bias", "[N]", "Added to every row of the group.", initialiseBias}, parameters);
  return parameters;
}

AttributeSpec numGroupsAttribute() {
  return {.name = "num_groups",
          .type = AttributeType::Integer,
          .defaultValue = std::int64_t{1},
          .minimum = 1,
          .maximum = kMostGroups,
          .unit = "groups",
          .help = "Linear transformations, one for each group of rows, G. TransformerEngine has no default."};
}

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> all = {
      numGroupsAttribute(),
      featuresAttribute("in_features", "Elements of each input row, K."),
      featuresAttribute("out_features", "Elements of each output row, N."),
      booleanAttribute("bias", true, "Whether each group adds a bias."),
      dtypeAttribute(),
      booleanAttribute(
          "single_grouped_weight", false,
          "One parameter weight, [G, N, K], instead of weight0, weight1 and so on. Unlike in TransformerEngine it "
          "needs no environment variable."),
      booleanAttribute("single_grouped_bias", false, "One parameter bias, [G, N], instead of bias0, bias1 and so on."),
      booleanAttribute(
          "scale_bias", false,
          "Multiplies the bias by a scale for each row, a further input. Without a bias it changes nothing."),
      requiresGradAttribute("weight"),
      requiresGradAttribute("bias"),
  };
  std::ranges::move(mainGradAttributes(), std::back_inserter(all));
  std::ranges::move(distributionAttributes("split_sizes"), std::back_inserter(all));
  all.push_back(delayedGradientAttribute());
  all.push_back(offloadAttribute());
  return all;
}

constexpr const char* kDetails =
    "Each group of rows has its own weight and bias: with num_groups 3 the parameters are weight0, weight1,\n"
    "weight2, bias0, bias1 and bias2. The rows are those of x as a matrix [M, K], so that with more than two axes all\n"
    "but the last are counted. With scale_bias y = x W_g^T + scales b_g; then db_g = dy scales, summed over the rows\n"
    "of the group, and dscales = dy b_g, summed over each row.\n"
    "The buffers output and grad_input of TransformerEngine belong to a call, not to the op: a program that runs a "
    "plan\n"
    "gives its executor memory for y, for the gradient of x, and for every other result of a pipeline.";

Result<FusibleOperation> specialise(const Attributes& given) {
  const GroupedForm form = groupedForm(given);
  return BasicOperation{
      .name = kName,
      .category = "Linear",
      .summary = "Multiplies each group of rows by its own weight matrix, and adds its own bias.",
      .formula = "y = x W_g^T + b_g in the rows of group g",
      .derivative = "dx = dy W_g; dW_g = dy^T x; db_g = dy, both summed over the rows of group g",
      .source =
          "TransformerEngine te.ops.GroupedLinear. Initialisation: He et al. 2015, arXiv:1502.01852, with a = "
          "sqrt(5): U(-1/sqrt(K), 1/sqrt(K)); the biases start at 0",
      .details = kDetails,
      .keywords = {"mixture of experts", "moe", "expert", "experts", "mixture", "grouped", "gemm", "matmul", "fc"},
      .inputs = inputsOf(form),
      .parameters = parametersOf(form),
      .outputs = {{"y", "[..., N]", "N is out_features; the dtype is the weights'."}},
      .attributes = attributes(),
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
      .isQuantizable = true,
  };
}

}  // namespace grouped_linear_parts
}  // namespace

BasicOperation grouped_linear() {
  using namespace grouped_linear_parts;
  return structuredOperation(attributes(), specialise);
}

}  // namespace fuseline::ops
