// Activation offload: tensors that an op keeps for backward wait in the host's memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

namespace fuseline {

/// cpu_offloading, after TransformerEngine's get_cpu_offload_context.
AttributeSpec offloadAttribute();
/// Adds the attribute, where backward of the op may read something of forward and the op does not have it.
void declareOffload(FusibleOperation& operation);
bool isOffloaded(const Attributes& attributes);
/// A composite's setting applies to its parts.
void passOnOffload(const Attributes& composite, const FusibleOperation& part, Attributes& attributes);

}  // namespace fuseline
