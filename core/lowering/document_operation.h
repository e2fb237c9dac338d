// The operation of a document's op: an entry of the op library, or an instance of one of the document's blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/block_operation.h"
#include "core/document/document.h"
#include "core/ops/catalog.h"

namespace fuseline {

/// The ports, attributes and help of an op. nullptr if neither the catalog nor the document knows it. Attributes are
/// resolved with the document's own symbols; where they are wrong it is the op for the default attributes. Lowering
/// says what is wrong.
OperationPointer operationOf(const PipelineDocument& document, const DocumentOp& op,
                             const OperationCatalog& catalog = builtinOperations());

}  // namespace fuseline
