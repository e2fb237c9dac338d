// Which op a document's op is, with the ports that its attributes give it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/ops/catalog.h"

namespace fuseline {

/// nullptr for an op that the catalog does not know. Attributes are resolved with the document's own symbols; where
/// they are wrong it is the op for the default attributes. Lowering says what is wrong.
OperationPointer operationOf(const PipelineDocument& document, const DocumentOp& op,
                             const OperationCatalog& catalog = builtinOperations());

}  // namespace fuseline
