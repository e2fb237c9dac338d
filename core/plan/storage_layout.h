// The memory of a plan: which tensors share a storage, how long each lives, and where it is placed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <vector>

namespace fuseline {

/// Does a tensor have memory that no other ever uses?
bool isPersistent(const PlanTensor& tensor, const PlanOptions& options);

/// Gives every tensor of the plan a storage, and every storage its lifetime and its place. Persistent storages come
/// first, then the arena, in which lifetimes decide; offloaded ones are in the host's memory.
/// viewOf: by tensor, the one whose memory it shows, or itself.
void layOutStorages(Plan& plan, const std::vector<int>& viewOf, const PlanOptions& options);

}  // namespace fuseline
