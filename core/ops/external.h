// Ops whose shapes Fuseline knows, but which it cannot run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <string_view>

namespace fuseline {

/// Has the op shapes, but no mathematics and no parts? Lowering then ends the pipeline at its inputs, and begins it
/// again at its outputs.
bool isExternal(const FusibleOperation& operation);

/// Is this the name of a tensor of such an op among the inputs and outputs of a graph? Ids in files have no dot.
bool isOfExternal(std::string_view tensor);

/// "layer1.attention" of "layer1.attention.y".
std::string_view externalOf(std::string_view tensor);

/// The code of the note for every such op.
inline constexpr const char* kExternalCode = "external";

/// The unit of a text attribute that consists of expressions of extents: symbols in it, within brackets, are replaced
/// by their values.
inline constexpr const char* kExtentsUnit = "elements";

}  // namespace fuseline
