// The order in which ops run, by the wires alone: whether the document is right or wrong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/edit.h"

#include <cstddef>
#include <vector>

namespace fuseline {

/// Numbers of ops, each behind what it reads, else as the document has them. Without those on a cycle or behind one.
std::vector<std::size_t> runningOrder(const DocumentBlock& block);

}  // namespace fuseline
