// The attribute cpu_offloading.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/offload.h"

#include "core/ops/external.h"
#include "core/ops/shared_attributes.h"

namespace fuseline {

namespace {

constexpr const char* kOffload = "cpu_offloading";

bool keepsTensors(const FusibleOperation& operation, const OperationCall& call) {
  GradientNeeds needs{.parameters = std::vector<bool>(operation.parameters.size(), true)};
  for (const TensorSpec& input : call.inputs) needs.inputs.push_back(isFloat(input.dtype));
  return !operation.saveContext({call.attributes, call.inputs, needs}).tensors.empty();
}

bool keepsSomething(const FusibleOperation& operation) {
  if (operation.isComposite()) return !isExternal(operation);
  if (operation.isView) return false;
  if (operation.exampleCall) return keepsTensors(operation, operation.exampleCall(1, DType::F32));
  const auto* const save = operation.saveContext.target<OperationContext (*)(const SaveArguments&)>();
  return operation.saveContext && !(save && *save == saveNothing);
}

}  // namespace

AttributeSpec offloadAttribute() {
  return {.name = kOffload,
          .type = AttributeType::Boolean,
          .defaultValue = false,
          .help =
              "Tensors that the op keeps for backward are copied to the host's memory, beside the steps that follow, "
              "and back "
              "before backward reads it. Saves device memory; results stay the same. Inputs of the pipeline, "
              "parameters, and what is small beside the rest stay where they are."};
}

void declareOffload(FusibleOperation& operation) {
  if (keepsSomething(operation) && !operation.attribute(kOffload)) operation.attributes.push_back(offloadAttribute());
}

bool isOffloaded(const Attributes& attributes) { return attributes.has(kOffload) && attributes.boolean(kOffload); }

void passOnOffload(const Attributes& composite, const FusibleOperation& part, Attributes& attributes) {
  if (isOffloaded(composite) && part.attribute(kOffload)) attributes.set(kOffload, true);
}

}  // namespace fuseline
