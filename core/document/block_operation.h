// A block as an op: the type name and the ports of its instances.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/ops/operation.h"

#include <string>
#include <string_view>

namespace fuseline {

/// "op": "block:Layer" is an instance of block Layer. No name of an op has a colon.
inline constexpr std::string_view kBlockPrefix = "block:";
std::string instanceOf(std::string_view block);
/// The block that an op is an instance of; empty for every other op. It refers to the op's text.
std::string_view blockNameOf(const DocumentOp& op);

/// The one attribute of an instance: "sequential".
AttributeSpec sequentialAttribute();

/// A block as an op: name, ports and the attribute of instances, no mathematics.
FusibleOperation blockOperation(std::string_view name, const DocumentBlock& block);

}  // namespace fuseline
