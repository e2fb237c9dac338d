// Walks the op library: properties of every basic op, independent of its computation.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/catalog.h"
#include "tests/support/compare.h"
#include "tests/support/elementwise_interpreter.h"
#include "tests/support/op_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

// Both sides are computed in double precision, so only the order of sums differs.
constexpr Tolerance kSameFormula = {.relative = 1e-12, .absolute = 1e-12};
// Central differences: the error of the formula is h^2, that of the subtraction 1e-16 / h.
constexpr double kStep = 1e-5;
constexpr Tolerance kFiniteDifference = {.relative = 1e-6, .absolute = 1e-6};

class BasicOperations : public ::testing::TestWithParam<const FusibleOperation*> {
 protected:
  const FusibleOperation& operation() const { return *GetParam(); }
};

ReferenceForward forwardOf(const OpSample& sample, const OpData& data) {
  return sample.operation->forwardCompute(sample.attributes, data.inputs, data.parameters);
}

const ReferenceTensor& tensorOf(const OpData& data, const ReferenceForward& forward, SavedTensor key) {
  const auto slot = static_cast<std::size_t>(key.slot);
  switch (key.kind) {
    case OperandKind::Input: return data.inputs.at(slot);
    case OperandKind::Parameter: return data.parameters.at(slot);
    case OperandKind::Output: return forward.outputs.at(slot);
    case OperandKind::Residual: return forward.residuals.at(slot);
    default: throw std::logic_error("a gradient cannot be saved");
  }
}

SavedValues savedValues(const OpData& data, const ReferenceForward& forward, const OperationContext& context) {
  SavedValues saved;
  saved.setState(context.state);
  for (const SavedTensor& key : context.tensors) saved.add(key, tensorOf(data, forward, key));
  return saved;
}

/// All that there can be: counts have no gradient.
GradientNeeds needsAll(const OpSample& sample, const OpData& data) {
  GradientNeeds needs{.parameters = std::vector<bool>(data.parameters.size(), true)};
  for (const TensorSpec& input : sample.inputs) needs.inputs.push_back(isFloat(input.dtype));
  return needs;
}

/// Every subset of needs, as the bits of a number: inputs first, then parameters.
GradientNeeds needsFromBits(const OpSample& sample, const OpData& data, unsigned bits) {
  GradientNeeds needs = needsAll(sample, data);
  for (std::size_t i = 0; i < needs.inputs.size(); ++i) needs.inputs[i] = needs.inputs[i] && ((bits >> i) & 1u) != 0;
  for (std::size_t i = 0; i < needs.parameters.size(); ++i)
    needs.parameters[i] = ((bits >> (i + needs.inputs.size())) & 1u) != 0;
  return needs;
}

OperationContext contextOf(const OpSample& sample, const GradientNeeds& needs) {
  return sample.operation->saveContext({sample.attributes, sample.inputs, needs});
}

ReferenceBackward backwardOf(const OpSample& sample, const OpData& data) {
  const ReferenceForward forward = forwardOf(sample, data);
  const SavedValues saved = savedValues(data, forward, contextOf(sample, needsAll(sample, data)));
  return sample.operation->backwardCompute(sample.attributes, saved, data.gradOutputs);
}

void expectShapes(const std::vector<ReferenceTensor>& tensors, const std::vector<TensorSpec>& specs) {
  ASSERT_EQ(tensors.size(), specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(tensors[i].shape, specs[i].shape) << i;
    EXPECT_EQ(static_cast<std::int64_t>(tensors[i].values.size()), specs[i].numElements()) << i;
  }
}

/// Counts have none.
void expectGradientsOf(const std::vector<TensorSpec>& inputs, const std::vector<ReferenceTensor>& gradients) {
  ASSERT_EQ(gradients.size(), inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (isFloat(inputs[i].dtype))
      expectShapes({gradients[i]}, {inputs[i]});
    else
      EXPECT_TRUE(gradients[i].values.empty()) << i;
  }
}

TEST_P(BasicOperations, ForwardProducesTheInferredShapes) {
  for (const OpSample& sample : samplesOf(operation())) {
    SCOPED_TRACE(sample.label);
    const OpData data = dataOf(sample);
    const ReferenceForward forward = forwardOf(sample, data);
    expectShapes(forward.outputs, data.specs.outputs);
    expectShapes(forward.residuals, data.specs.residuals);
    EXPECT_EQ(data.specs.outputs.size(), sample.operation->outputs.size());
    EXPECT_EQ(data.specs.parameters.size(), sample.operation->parameters.size());
    EXPECT_EQ(data.specs.residuals.size(), sample.operation->residuals.size());
  }
}

TEST_P(BasicOperations, BackwardProducesTheShapesOfInputsAndParameters) {
  for (const OpSample& sample : samplesOf(operation())) {
    SCOPED_TRACE(sample.label);
    const OpData data = dataOf(sample);
    const ReferenceBackward backward = backwardOf(sample, data);
    expectGradientsOf(sample.inputs, backward.inputs);
    expectShapes(backward.parameters, data.specs.parameters);
  }
}

/// The loss whose gradient with respect to each output is gradOutputs.
double lossOf(const OpSample& sample, const OpData& data) {
  const ReferenceForward forward = forwardOf(sample, data);
  double loss = 0.0;
  for (std::size_t port = 0; port < forward.outputs.size(); ++port)
    for (std::size_t i = 0; i < forward.outputs[port].values.size(); ++i)
      loss += forward.outputs[port].values[i] * data.gradOutputs[port].values[i];
  return loss;
}

/// The slope of the loss with respect to every element of one tensor of `data`.
std::vector<double> slopes(const OpSample& sample, OpData& data, ReferenceTensor& tensor) {
  std::vector<double> result;
  for (double& value : tensor.values) {
    const double original = value;
    value = original + kStep;
    const double above = lossOf(sample, data);
    value = original - kStep;
    const double below = lossOf(sample, data);
    value = original;
    result.push_back((above - below) / (2.0 * kStep));
  }
  return result;
}

TEST_P(BasicOperations, BackwardAgreesWithFiniteDifferences) {
  for (const OpSample& sample : samplesOf(operation())) {
    SCOPED_TRACE(sample.label);
    OpData data = dataOf(sample);
    const ReferenceBackward backward = backwardOf(sample, data);
    for (std::size_t slot = 0; slot < data.inputs.size(); ++slot) {
      if (!isFloat(sample.inputs[slot].dtype)) continue;
      EXPECT_TRUE(allClose(backward.inputs[slot].values, slopes(sample, data, data.inputs[slot]), kFiniteDifference))
          << "input " << slot;
    }
    for (std::size_t slot = 0; slot < data.parameters.size(); ++slot)
      EXPECT_TRUE(
          allClose(backward.parameters[slot].values, slopes(sample, data, data.parameters[slot]), kFiniteDifference))
          << "parameter " << slot;
  }
}

/// Are all needed gradients there, and equal to those of a backward that was given everything?
::testing::AssertionResult hasNeededGradients(const ReferenceBackward& actual, const ReferenceBackward& full,
                                              const GradientNeeds& needs) {
  for (std::size_t slot = 0; slot < needs.inputs.size(); ++slot)
    if (needs.inputs[slot] && actual.inputs[slot].values != full.inputs[slot].values)
      return ::testing::AssertionFailure() << "the gradient of input " << slot << " differs";
  for (std::size_t slot = 0; slot < needs.parameters.size(); ++slot)
    if (needs.parameters[slot] && actual.parameters[slot].values != full.parameters[slot].values)
      return ::testing::AssertionFailure() << "the gradient of parameter " << slot << " differs";
  return ::testing::AssertionSuccess();
}

TEST_P(BasicOperations, BackwardNeedsOnlyWhatWasSavedForTheNeededGradients) {
  for (const OpSample& sample : samplesOf(operation())) {
    const OpData data = dataOf(sample);
    const ReferenceForward forward = forwardOf(sample, data);
    const ReferenceBackward full = backwardOf(sample, data);
    for (unsigned bits = 0; bits < 1u << (data.inputs.size() + data.parameters.size()); ++bits) {
      SCOPED_TRACE(fmt::format("{}, needs {:b}", sample.label, bits));
      const GradientNeeds needs = needsFromBits(sample, data, bits);
      const SavedValues saved = savedValues(data, forward, contextOf(sample, needs));
      if (!needs.anyInput() && !needs.anyParameter()) continue;  // takes no part in backward
      EXPECT_TRUE(hasNeededGradients(sample.operation->backwardCompute(sample.attributes, saved, data.gradOutputs),
                                     full, needs));
    }
  }
}

TEST_P(BasicOperations, SavesNothingWhenNoGradientIsNeeded) {
  for (const OpSample& sample : samplesOf(operation())) {
    const OpData data = dataOf(sample);
    EXPECT_TRUE(contextOf(sample, needsFromBits(sample, data, 0)).tensors.empty()) << sample.label;
  }
}

/// Does backward work without the tensor `left`?
bool canDoWithout(const OpSample& sample, const OpData& data, OperationContext context, std::size_t left) {
  context.tensors.erase(context.tensors.begin() + static_cast<std::ptrdiff_t>(left));
  const ReferenceForward forward = forwardOf(sample, data);
  try {
    const ReferenceBackward backward =
        sample.operation->backwardCompute(sample.attributes, savedValues(data, forward, context), data.gradOutputs);
    return bool(hasNeededGradients(backward, backwardOf(sample, data), needsAll(sample, data)));
  } catch (const std::logic_error&) {
    return false;
  }
}

TEST_P(BasicOperations, BackwardReadsEverythingThatIsSaved) {
  const OpSample sample = samplesOf(operation()).back();
  const OpData data = dataOf(sample);
  const OperationContext context = contextOf(sample, needsAll(sample, data));
  for (std::size_t i = 0; i < context.tensors.size(); ++i)
    EXPECT_FALSE(canDoWithout(sample, data, context, i)) << "saved tensor " << i;
}

/// All operands of a call, as a program reads them.
OperandValues operandsOf(const OpData& data) {
  OperandValues operands;
  const auto add = [&](OperandKind kind, const std::vector<ReferenceTensor>& tensors) {
    for (std::size_t slot = 0; slot < tensors.size(); ++slot)
      operands[{0, kind, static_cast<int>(slot)}] = tensors[slot].values;
  };
  add(OperandKind::Input, data.inputs);
  add(OperandKind::Parameter, data.parameters);
  add(OperandKind::GradOutput, data.gradOutputs);
  return operands;
}

enum class Direction { Forward, Backward };

OperandValues interpretOp(const OpSample& sample, const OpData& data, Direction direction,
                          const std::vector<OperandKey>& absent = {}) {
  ElementwiseComposer composer;
  OperandValues operands = operandsOf(data);
  for (const OperandKey& key : absent) {
    composer.setAbsent(key);
    operands.erase(key);
  }
  composer.append(0, sample.operation->elementwise, sample.attributes, direction == Direction::Backward, 1);
  const TensorSpec& grid = data.specs.outputs.front();
  return interpret(composer.finish(), grid.rows(), grid.cols(), operands);
}

void expectOperands(const OperandValues& actual, OperandKind kind, const std::vector<ReferenceTensor>& expected) {
  for (std::size_t slot = 0; slot < expected.size(); ++slot) {
    const auto found = actual.find({0, kind, static_cast<int>(slot)});
    ASSERT_NE(found, actual.end()) << "slot " << slot << " is not written";
    EXPECT_TRUE(allClose(found->second, expected[slot].values, kSameFormula)) << "slot " << slot;
  }
}

class ElementwiseOperations : public BasicOperations {};

TEST_P(ElementwiseOperations, ForwardProgramEqualsTheReference) {
  for (const OpSample& sample : samplesOf(operation())) {
    SCOPED_TRACE(sample.label);
    const OpData data = dataOf(sample);
    expectOperands(interpretOp(sample, data, Direction::Forward), OperandKind::Output, forwardOf(sample, data).outputs);
  }
}

TEST_P(ElementwiseOperations, BackwardProgramEqualsTheReference) {
  for (const OpSample& sample : samplesOf(operation())) {
    SCOPED_TRACE(sample.label);
    const OpData data = dataOf(sample);
    const OperandValues actual = interpretOp(sample, data, Direction::Backward);
    const ReferenceBackward expected = backwardOf(sample, data);
    expectOperands(actual, OperandKind::GradInput, expected.inputs);
    expectOperands(actual, OperandKind::GradParameter, expected.parameters);
  }
}

TEST_P(ElementwiseOperations, AnAbsentOutputGradientCountsAsZero) {
  for (const OpSample& sample : samplesOf(operation()))
    for (std::size_t port = 0; port < operation().outputs.size(); ++port) {
      SCOPED_TRACE(fmt::format("{}, output {}", sample.label, port));
      OpData data = dataOf(sample);
      for (double& value : data.gradOutputs[port].values) value = 0.0;
      const OperandValues actual =
          interpretOp(sample, data, Direction::Backward, {{0, OperandKind::GradOutput, static_cast<int>(port)}});
      expectOperands(actual, OperandKind::GradInput, backwardOf(sample, data).inputs);
    }
}

TEST_P(ElementwiseOperations, DroppedGradientsAreNotWritten) {
  const OpSample sample = samplesOf(operation()).back();
  const OpData data = dataOf(sample);
  const OperandKey dropped{0, OperandKind::GradInput, 0};
  EXPECT_FALSE(interpretOp(sample, data, Direction::Backward, {dropped}).contains(dropped));
}

TEST_P(ElementwiseOperations, ProgramsReadNoMoreThanIsSaved) {
  const OpSample sample = samplesOf(operation()).back();
  const OpData data = dataOf(sample);
  std::vector<OperandKey> unsaved;
  const std::vector<SavedTensor> saved = contextOf(sample, needsAll(sample, data)).tensors;
  for (int slot = 0; slot < static_cast<int>(data.inputs.size()); ++slot)
    if (std::ranges::find(saved, SavedTensor{OperandKind::Input, slot}) == saved.end())
      unsaved.push_back({0, OperandKind::Input, slot});
  const ReferenceBackward expected = backwardOf(sample, data);
  expectOperands(interpretOp(sample, data, Direction::Backward, unsaved), OperandKind::GradInput, expected.inputs);
}

/// The sample's data with NaN as the element `index` of the main input.
OpData withNan(OpData data, std::size_t index) {
  data.inputs[0].values[index] = std::numeric_limits<double>::quiet_NaN();
  return data;
}

/// The elements of the main input that determine the first output element: of a gated op one of each half, or of each
/// of the first two blocks.
std::vector<std::size_t> elementsOfTheFirstOutput(const FusibleOperation& operation, const OpSample& sample,
                                                  const OpData& data) {
  if (!operation.elementwise.isGated) return {0};
  const std::int64_t block = operation.elementwise.interleaveFor(sample.attributes);
  return {0, static_cast<std::size_t>(block > 0 ? block : data.specs.outputs[0].cols())};
}

// A departure from TransformerEngine, whose rectifiers and clamps turn NaN into a number.
TEST_P(ElementwiseOperations, PropagateNanToTheOutput) {
  const OpSample sample = samplesOf(operation()).back();
  const OpData plain = dataOf(sample);
  for (const std::size_t element : elementsOfTheFirstOutput(operation(), sample, plain)) {
    const OpData data = withNan(plain, element);
    const OperandValues program = interpretOp(sample, data, Direction::Forward);
    EXPECT_TRUE(std::isnan(forwardOf(sample, data).outputs[0].values.front()));
    EXPECT_TRUE(std::isnan(program.at({0, OperandKind::Output, 0}).front()));
  }
}

// Norms and GEMMs have no program; no op, whether or not it has programs for the shapes, may lose a NaN.
TEST_P(BasicOperations, LoseNoNan) {
  for (const OpSample& sample : samplesOf(operation())) {
    SCOPED_TRACE(sample.label);
    const OpData plain = dataOf(sample);
    if (plain.inputs[0].values.empty() || operation().exampleCall) continue;
    const OpData data = withNan(plain, 0);
    const ReferenceForward forward = forwardOf(sample, data);
    for (const ReferenceTensor& output : forward.outputs) EXPECT_TRUE(std::isnan(output.values.front()));
  }
}

class Activations : public BasicOperations {};

// The first gradient element belongs to the first half, so it depends on both halves.
TEST_P(Activations, PropagateNanToTheGradient) {
  const OpSample sample = samplesOf(operation()).back();
  const OpData plain = dataOf(sample);
  for (const std::size_t element : elementsOfTheFirstOutput(operation(), sample, plain)) {
    const OpData data = withNan(plain, element);
    const OperandValues program = interpretOp(sample, data, Direction::Backward);
    EXPECT_TRUE(std::isnan(backwardOf(sample, data).inputs[0].values.front()));
    EXPECT_TRUE(std::isnan(program.at({0, OperandKind::GradInput, 0}).front()));
  }
}

TEST_P(BasicOperations, KeepsTheDtypeOfTheInputUnlessToldOtherwise) {
  if (operation().inputs[0].elements == PortElements::Counts)
    GTEST_SKIP() << "Its dtype does not follow from an input.";
  if (operation().name == "CrossEntropy" || operation().name == "MoEAuxLoss") GTEST_SKIP() << "A loss is f32.";
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    OpSample sample = samplesOf(operation()).front();
    for (TensorSpec& input : sample.inputs)
      if (isFloat(input.dtype)) input.dtype = dtype;
    const OperationSpecs specs = dataOf(sample).specs;
    for (const TensorSpec& spec : specs.outputs) EXPECT_EQ(spec.dtype, spec.dtype == DType::I64 ? DType::I64 : dtype);
    for (const TensorSpec& spec : specs.parameters) EXPECT_EQ(spec.dtype, dtype);
    for (const TensorSpec& spec : specs.residuals) EXPECT_EQ(spec.dtype, DType::F32);
  }
}

TEST_P(BasicOperations, CountsFlopsInProportionToTheRows) {
  OpSample sample = samplesOf(operation()).back();
  const auto flopsOfRows = [&](std::int64_t rows) {
    for (std::size_t slot = 0; slot < sample.inputs.size(); ++slot) {
      const bool isWeight = sample.operation->inputs[slot].name == "weight";
      if (slot == 0 || (isFloat(sample.inputs[slot].dtype) && !isWeight)) sample.inputs[slot].shape.front() = rows;
    }
    return sample.operation->flops(sample.attributes, sample.inputs);
  };
  EXPECT_EQ(flopsOfRows(0).forward + flopsOfRows(0).backward, 0);
  EXPECT_EQ(flopsOfRows(6).forward, 3 * flopsOfRows(2).forward);
  EXPECT_EQ(flopsOfRows(6).backward, 3 * flopsOfRows(2).backward);
}

std::vector<const FusibleOperation*> elementwiseOperations() {
  std::vector<const FusibleOperation*> operations = basicOperations();
  std::erase_if(operations, [](const FusibleOperation* operation) { return !operation->isElementwise(); });
  return operations;
}

std::vector<const FusibleOperation*> activations() {
  std::vector<const FusibleOperation*> operations = basicOperations();
  std::erase_if(operations, [](const FusibleOperation* operation) { return operation->category != "Activation"; });
  return operations;
}

INSTANTIATE_TEST_SUITE_P(Catalog, BasicOperations, ::testing::ValuesIn(allBasicOperations()), operationName);
INSTANTIATE_TEST_SUITE_P(Catalog, ElementwiseOperations, ::testing::ValuesIn(elementwiseOperations()), operationName);
INSTANTIATE_TEST_SUITE_P(Catalog, Activations, ::testing::ValuesIn(activations()), operationName);

}  // namespace
}  // namespace fuseline::testing
