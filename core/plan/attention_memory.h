// The memory of attention between forward and backward, and what running its forward again would free.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/memory_profile.h"

#include <string>

namespace fuseline {

/// One line for each DotProductAttention of a training plan:
/// "attention: its scores, 16 MiB, are never kept; running its forward again in backward would free 32 KiB\n".
std::string attentionMemory(const MemoryProfile& profile, const Plan& plan, const Graph& graph);

}  // namespace fuseline
