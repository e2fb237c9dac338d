// Lookups on an op's definition.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

namespace fuseline {

namespace {

template <class Range>
int indexByName(const Range& items, std::string_view name) {
  const auto found = std::ranges::find_if(items, [&](const auto& item) { return item.name == name; });
  return found == items.end() ? -1 : static_cast<int>(found - items.begin());
}

}  // namespace

bool GradientNeeds::anyInput() const { return std::ranges::find(inputs, true) != inputs.end(); }

bool GradientNeeds::anyParameter() const { return std::ranges::find(parameters, true) != parameters.end(); }

bool SavedValues::has(SavedTensor key) const {
  return std::ranges::any_of(m_tensors, [&](const auto& entry) { return entry.first == key; });
}

const ReferenceTensor& SavedValues::find(SavedTensor key) const {
  const auto found = std::ranges::find_if(m_tensors, [&](const auto& entry) { return entry.first == key; });
  // A mistake in an op's file. It must show in every build, so that the conformance suite finds it.
  if (found == m_tensors.end()) throw std::logic_error("backward reads a tensor that saveContext did not name");
  return *found->second;
}

int FusibleOperation::inputIndex(std::string_view port) const { return indexByName(inputs, port); }

int FusibleOperation::outputIndex(std::string_view port) const { return indexByName(outputs, port); }

std::string FusibleOperation::kernelName() const {
  if (!kernel.empty()) return kernel;
  return isElementwise() ? "elementwise" : name;
}

std::string FusibleOperation::noteFor(const Attributes& given) const { return note ? note(given) : std::string(); }

const AttributeSpec* FusibleOperation::attribute(std::string_view attributeName) const {
  const int index = indexByName(attributes, attributeName);
  return index < 0 ? nullptr : &attributes[static_cast<std::size_t>(index)];
}

OperationPointer unowned(const FusibleOperation& operation) { return {std::shared_ptr<const void>(), &operation}; }

Result<OperationPointer> specialised(const FusibleOperation& operation, const Attributes& attributes) {
  if (!operation.specialise || attributes == defaultAttributes(operation)) return unowned(operation);
  Result<FusibleOperation> own = operation.specialise(operation, attributes);
  if (!own) return own.error();
  return OperationPointer(std::make_shared<const FusibleOperation>(std::move(*own)));
}

namespace {

std::optional<Error> checkElements(const FusibleOperation& operation, const Port& port, const TensorSpec& spec) {
  if (port.elements == PortElements::Any) return std::nullopt;
  const bool takesCounts = port.elements == PortElements::Counts;
  if (takesCounts != isFloat(spec.dtype)) return std::nullopt;
  return Error{fmt::format("{}: {} is {}, but it must be {}.", operation.name, port.name, toString(spec),
                           takesCounts ? "i64; it holds counts" : "f32, f16 or bf16; integers are counts only")};
}

}  // namespace

std::optional<Error> checkElements(const FusibleOperation& operation, std::span<const TensorSpec> inputs) {
  for (std::size_t slot = 0; slot < std::min(inputs.size(), operation.inputs.size()); ++slot)
    if (auto error = checkElements(operation, operation.inputs[slot], inputs[slot])) return error;
  return std::nullopt;
}

Verdict checkCount(const FusibleOperation& operation, std::string_view function, std::string_view what,
                   std::size_t given, std::size_t declared) {
  if (given == declared) return Verdict::yes();
  return Verdict::no(
      fmt::format("{}: {} gives {} {}, but the op declares {}.", operation.name, function, given, what, declared));
}

Result<OperationSpecs> inferSpecs(const FusibleOperation& operation, const Attributes& attributes,
                                  std::span<const TensorSpec> inputs) {
  if (auto error = checkElements(operation, inputs)) return *error;
  Result<OperationSpecs> specs = operation.infer(attributes, inputs);
  if (!specs) return specs;
  for (const auto& [what, given, declared] :
       {std::tuple{"outputs", specs->outputs.size(), operation.outputs.size()},
        std::tuple{"parameters", specs->parameters.size(), operation.parameters.size()},
        std::tuple{"residuals", specs->residuals.size(), operation.residuals.size()}})
    if (const Verdict verdict = checkCount(operation, "infer", what, given, declared); !verdict)
      return Error{verdict.reason()};
  return specs;
}

Attributes defaultAttributes(const FusibleOperation& operation) {
  Attributes attributes;
  for (const AttributeSpec& spec : operation.attributes) attributes.set(spec.name, spec.defaultValue);
  return attributes;
}

FusibleOperation structuredOperation(const std::vector<AttributeSpec>& attributes,
                                     Result<FusibleOperation> (*specialise)(const Attributes&),
                                     OperationCall (*exampleCall)(std::int64_t elements, DType dtype)) {
  Result<FusibleOperation> op = specialise(defaultAttributes({.attributes = attributes}));
  op->specialise = [specialise](const FusibleOperation&, const Attributes& given) { return specialise(given); };
  op->exampleCall = exampleCall;
  return std::move(*op);
}

}  // namespace fuseline
