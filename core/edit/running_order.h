// The order in which ops run, by the wires alone: whether the document is right or wrong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/edit.h"

#include <cstddef>
#include <vector>

namespace fuseline {

/// Indices of ops, each after its producers; ties in document order. Excludes ops on or downstream of a cycle.
std::vector<std::size_t> runningOrder(const DocumentBlock& block);

}  // namespace fuseline
