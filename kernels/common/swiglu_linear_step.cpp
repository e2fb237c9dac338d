// The program of SwiGLU within a larger step.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/swiglu_linear_step.h"

namespace fuseline::swiglu_linear {

int lastMember(const StepRequest& request) { return static_cast<int>(request.step.nodes.size()) - 1; }

const TensorSpec& activatedSpec(const StepRequest& request) {
  return request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0);
}

ElementwiseProgram activationProgram(const StepRequest& request, const ActivationResults& results) {
  const Node& node = request.member(kActivation);
  ElementwiseComposer composer;
  if (!results.hasOutput) composer.setInternal(kActivated);
  composer.append(kActivation, node.operation->elementwise, node.attributes, false, 1);
  if (results.hasGradient) composer.append(kActivation, node.operation->elementwise, node.attributes, true, 1);
  return composer.finish();
}

}  // namespace fuseline::swiglu_linear
