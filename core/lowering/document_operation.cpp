// Finds ops by name, in the op library and among the blocks of a document.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/document_operation.h"

#include "core/lowering/attribute_resolver.h"
#include "core/lowering/symbol_table.h"

namespace fuseline {

namespace {

OperationPointer forAttributesOf(const PipelineDocument& document, const DocumentOp& op,
                                 const FusibleOperation& operation) {
  DiagnosticSink ignored(nullptr);
  const LoweringOptions options;
  const SymbolTable symbols(document, options, ignored);
  const ResolvedAttributes resolved = AttributeResolver(symbols, ignored).resolve(op, 0, operation);
  if (resolved.hasFailed) return nullptr;
  Result<OperationPointer> own = specialised(operation, resolved.values);
  return own ? std::move(*own) : nullptr;
}

}  // namespace

OperationPointer operationOf(const PipelineDocument& document, const DocumentOp& op, const OperationCatalog& catalog) {
  const std::string_view name = blockNameOf(op);
  if (const DocumentBlock* block = name.empty() ? nullptr : document.findBlock(name))
    return std::make_shared<const FusibleOperation>(blockOperation(name, *block));
  const FusibleOperation* found = catalog.find(op.operation);
  if (!found) return nullptr;
  OperationPointer own = found->specialise ? forAttributesOf(document, op, *found) : nullptr;
  return own ? own : unowned(*found);
}

}  // namespace fuseline
