// A block as an op: the type name and the ports of its instances.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/ops/operation.h"

#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// "op": "block:Layer" is an instance of block Layer. No name of an op has a colon.
inline constexpr std::string_view kBlockPrefix = "block:";
std::string instanceOf(std::string_view block);
/// The block that an op is an instance of; empty for every other op. It refers to the op's text.
std::string_view blockNameOf(const DocumentOp& op);

/// Instances with this attribute are the layers of a model; this symbol says how many of them are used.
inline constexpr const char* kLayerAttribute = "layer";
inline constexpr const char* kLayersSymbol = "layers";
inline constexpr int kMostLayers = 100'000;

/// The attributes of an instance: "sequential" and "layer".
std::vector<AttributeSpec> instanceAttributes();

/// A block as an op: name, ports and the attributes of instances, no mathematics.
FusibleOperation blockOperation(std::string_view name, const DocumentBlock& block);

}  // namespace fuseline
