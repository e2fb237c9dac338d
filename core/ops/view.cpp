// The mathematics of views: none but the shape.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/view.h"

#include <cassert>
#include <utility>

namespace fuseline {

namespace {

constexpr const char* kInputShape = "input_shape";

OperationContext saveInputShape(const SaveArguments& arguments) {
  OperationContext context;
  context.state.set(kInputShape, arguments.inputs[0].shape);
  return context;
}

ReferenceBackward backward(const Attributes&, const SavedValues& saved, std::span<const ReferenceTensor> gradOutputs) {
  return {.inputs = {{.shape = saved.state().integers(kInputShape), .values = gradOutputs[0].values}}};
}

}  // namespace

BasicOperation viewOperation(BasicOperation op) {
  op.isView = true;
  op.flops = [](const Attributes&, std::span<const TensorSpec>) { return FlopCount{}; };
  op.forwardCompute = [infer = op.infer](const Attributes& attributes, std::span<const ReferenceTensor> inputs,
                                         std::span<const ReferenceTensor>) -> ReferenceForward {
    const TensorSpec x[] = {{.shape = inputs[0].shape}};
    Result<OperationSpecs> specs = infer(attributes, x);
    assert(specs);  // the graph has inferred these specs before
    return {.outputs = {{.shape = std::move(specs->outputs[0].shape), .values = inputs[0].values}}};
  };
  op.saveContext = saveInputShape;
  op.backwardCompute = backward;
  return op;
}

}  // namespace fuseline
