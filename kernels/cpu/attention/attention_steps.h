// Attention as a step, by itself or as the last member of a fusion.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/kernel_def.h"

#include <memory>

namespace fuseline::cpu {

/// Problem of the node's own tensors, which may be other than those of the step. attention: its member.
Result<AttentionProblem> attentionProblem(const CompileRequest& request, int attention = 0);

/// Forward or backward, as the step's phase.
std::unique_ptr<Kernel> makeAttention(const CompileRequest& request, AttentionProblem problem);

}  // namespace fuseline::cpu
