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
              "Offload tensors that the op keeps for backward to host memory, in parallel with the following steps. "
              "Saves device memory; results stay the same. Inputs of the pipeline, parameters and small tensors are "
              "not offloaded."};
}

void declareOffload(FusibleOperation& operation) {
  if (keepsSomething(operation) && !operation.attribute(kOffload)) operation.attributes.push_back(offloadAttribute());
}

bool isOffloaded(const Attributes& attributes) { return attributes.has(kOffload) && attributes.boolean(kOffload); }

void passOnOffload(const Attributes& composite, const FusibleOperation& part, Attributes& attributes) {
  if (isOffloaded(composite) && part.attribute(kOffload)) attributes.set(kOffload, true);
}

}  // namespace fuseline
