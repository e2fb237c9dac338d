// Derives sample calls from attribute specs.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/op_samples.h"

#include "core/numerics/random.h"
#include "core/ops/catalog.h"
#include "tests/support/structured_samples.h"

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace fuseline::testing {

namespace {

constexpr std::int64_t kOutFeatures = 5;
constexpr std::int64_t kNumGroups = 3;
constexpr std::uint64_t kSeed = 1234;
constexpr double kReal = -2.5;
constexpr double kProbability = 0.4;
constexpr std::int64_t kInterleave = 32;
constexpr double kOtherReal = 0.3;
constexpr double kKinkDistance = 0.01;

/// A value for an attribute that has no default, or whose default tests nothing. An op with another meaning of an
/// attribute adds a line here.
AttributeValue fittingValue(const AttributeSpec& spec, const Shape& shape) {
  if (spec.name == "num_groups") return kNumGroups;
  if (!spec.isRequired()) return spec.defaultValue;
  if (spec.name == "out_features") return kOutFeatures;
  if (spec.name == "shape") return Shape{-1, shape.back()};
  if (spec.name == "p") return kProbability;
  switch (spec.type) {
    case AttributeType::Integer: return shape.back();
    case AttributeType::IntegerList: return std::vector{shape.back()};
    case AttributeType::Real: return spec.minimum ? std::abs(kReal) : kReal;
    case AttributeType::Boolean: return false;
    case AttributeType::Text: return spec.choices.front();
  }
  return {};
}

/// The last two extents, where a list of them may be normalized together.
std::vector<AttributeValue> otherLists(const Shape& shape) {
  if (shape.size() < 2 || shape[shape.size() - 2] == 0) return {};
  return {std::vector(shape.end() - 2, shape.end())};
}

/// Other values that are worth a try.
std::vector<AttributeValue> otherValues(const AttributeSpec& spec, const Shape& shape) {
  if (spec.name == "shape") return {Shape{-1}, Shape{numElements(shape)}, Shape(shape.rbegin(), shape.rend())};
  if (spec.name == "activation_recompute_in_mlp") return {};  // true is refused
  if (spec.name == "cache_quantized_input") return {};        // another form of the op, with separate tests
  if (spec.name == "num_groups") return {std::int64_t{1}};
  if (spec.name == "glu_interleave_size" && shape.back() % (2 * kInterleave) == 0) return {kInterleave};
  switch (spec.type) {
    case AttributeType::Boolean: return {spec.defaultValue != AttributeValue(true)};
    case AttributeType::Text: return {spec.choices.begin(), spec.choices.end()};
    case AttributeType::Real: return {kOtherReal};
    case AttributeType::IntegerList: return otherLists(shape);
    case AttributeType::Integer: return {};
  }
  return {};
}

/// A gated op takes tensors that are twice as wide.
Shape widened(const FusibleOperation& operation, Shape shape) {
  if (operation.elementwise.isGated) shape.back() *= 2;
  return shape;
}

/// An extra input without the main input's last axis has one value a row; counts have one a group.
TensorSpec specOf(const Port& port, const FusibleOperation& operation, const Attributes& attributes, Shape shape) {
  if (port.elements == PortElements::Counts) return {.dtype = DType::I64, .shape = {attributes.integer("num_groups")}};
  if (port.shape == "[...]" && operation.inputs.front().shape != "[...]") shape.pop_back();
  return {.dtype = DType::F32, .shape = std::move(shape)};
}

OpSample sampleWith(const FusibleOperation& operation, const Shape& shape, Attributes attributes) {
  Result<OperationPointer> own = specialised(operation, attributes);
  if (!own) throw std::invalid_argument(own.error().message);
  OpSample sample{.label = fmt::format("{} of {}", operation.name, toString(shape)), .operation = std::move(*own)};
  for (const Port& port : sample.operation->inputs)
    sample.inputs.push_back(specOf(port, *sample.operation, attributes, shape));
  sample.attributes = std::move(attributes);
  return sample;
}

void appendSamples(const FusibleOperation& operation, const Shape& shape, std::vector<OpSample>& samples) {
  const Attributes base = fittingAttributes(operation, shape);
  samples.push_back(sampleWith(operation, shape, base));
  for (const AttributeSpec& spec : operation.attributes)
    for (const AttributeValue& value : otherValues(spec, shape)) {
      Attributes varied = base;
      varied.set(spec.name, value);
      samples.push_back(sampleWith(operation, shape, std::move(varied)));
      samples.back().label += fmt::format(", {} {}", spec.name, toString(value));
    }
}

ReferenceTensor randomTensor(const Shape& shape, const std::string& name) {
  ReferenceTensor tensor{.shape = shape, .values = std::vector<double>(static_cast<std::size_t>(numElements(shape)))};
  RandomStream(kSeed, name).uniforms(0, tensor.values);
  for (double& value : tensor.values) value = value < 0.5 ? -0.25 - 3.5 * value : 0.25 + 3.5 * (value - 0.5);
  return tensor;
}

/// Clamps bend where an element equals a limit among the attributes: elements near one move away from it.
void keepOffLimits(ReferenceTensor& tensor, const Attributes& attributes) {
  for (const auto& [name, limit] : attributes) {
    if (!std::holds_alternative<double>(limit)) continue;
    for (double& value : tensor.values)
      if (std::abs(std::abs(value) - std::abs(std::get<double>(limit))) < kKinkDistance) value *= 1.0 + kKinkDistance;
  }
}

std::vector<ReferenceTensor> randomTensors(const std::vector<TensorSpec>& specs, const std::string& name) {
  std::vector<ReferenceTensor> tensors;
  for (const TensorSpec& spec : specs)
    tensors.push_back(randomTensor(spec.shape, fmt::format("{}{}", name, tensors.size())));
  return tensors;
}

}  // namespace

Attributes fittingAttributes(const FusibleOperation& operation, const Shape& shape) {
  Attributes attributes;
  for (const AttributeSpec& spec : operation.attributes) attributes.set(spec.name, fittingValue(spec, shape));
  return attributes;
}

std::vector<const FusibleOperation*> allBasicOperations() {
  std::vector<const FusibleOperation*> basic;
  for (const auto& operation : builtinOperations().operations())
    if (!operation->isComposite()) basic.push_back(operation.get());
  return basic;
}

std::vector<const FusibleOperation*> basicOperations() {
  std::vector<const FusibleOperation*> basic = allBasicOperations();
  std::erase_if(basic, [](const FusibleOperation* operation) { return bool(operation->exampleCall); });
  return basic;
}

std::vector<const FusibleOperation*> structuredOperations() {
  std::vector<const FusibleOperation*> structured = allBasicOperations();
  std::erase_if(structured, [](const FusibleOperation* operation) { return !operation->exampleCall; });
  return structured;
}

std::vector<OpSample> samplesOf(const FusibleOperation& operation) {
  if (operation.exampleCall) return structuredSamples(operation);
  std::vector<OpSample> samples;
  for (const Shape& shape : {Shape{0, 6}, Shape{1}, Shape{1, 1}, Shape{5, 7}, Shape{3, 2, 9}, Shape{2, 64}})
    appendSamples(operation, widened(operation, shape), samples);
  return samples;
}

OpData dataOf(const OpSample& sample) {
  Result<OperationSpecs> specs = inferSpecs(*sample.operation, sample.attributes, sample.inputs);
  if (!specs) throw std::invalid_argument(sample.label + ": " + specs.error().message);
  std::vector<ReferenceTensor> inputs = randomTensors(sample.inputs, "input");
  for (ReferenceTensor& input : inputs) keepOffLimits(input, sample.attributes);
  for (std::size_t slot = 0; slot < inputs.size(); ++slot)
    if (const Port& port = sample.operation->inputs[slot]; port.draw)
      inputs[slot].values = port.draw({sample.attributes, sample.inputs, kSeed, port.name}).toDoubles();
  return {.specs = *specs,
          .inputs = std::move(inputs),
          .parameters = randomTensors(specs->parameters, "parameter"),
          .gradOutputs = randomTensors(specs->outputs, "gradient")};
}

}  // namespace fuseline::testing
