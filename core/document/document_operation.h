// What an op of a document is: an entry of the op library, or an instance of one of the document's blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/ops/catalog.h"

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

/// The ports, attributes and help of an op. nullptr if neither the catalog nor the document knows it. Attributes are
/// resolved with the document's own symbols; where they are wrong it is the op for the default attributes. Lowering
/// says what is wrong.
OperationPointer operationOf(const PipelineDocument& document, const DocumentOp& op,
                             const OperationCatalog& catalog = builtinOperations());

}  // namespace fuseline
