// Makes collectives of their shape rules.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/communication.h"

#include "core/ops/tensor_parallel.h"
#include "core/ops/view.h"

#include <utility>

namespace fuseline {

BasicOperation communication(BasicOperation op) {
  op.category = "Communication";
  op.note = [](const Attributes&) { return "one rank: nothing to measure"; };
  return viewOperation(inferredOnRanks(std::move(op)));
}

}  // namespace fuseline
