// Attributes of the ops of a missed fusion after the edit that it suggests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <map>

namespace fuseline {

using AttributesByNode = std::map<NodeId, Attributes>;

/// Empty: its first repair is none of one attribute of one of its ops.
AttributesByNode repairedAttributes(const Graph& graph, const Attempt& attempt);

}  // namespace fuseline
