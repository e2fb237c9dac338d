// Finds ops by name, in the op library and among the blocks of a document.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/document_operation.h"

#include "core/document/attribute_resolver.h"
#include "core/document/symbol_table.h"

#include <fmt/format.h>

namespace fuseline {

std::string instanceOf(std::string_view block) { return std::string(kBlockPrefix) + std::string(block); }

std::string_view blockNameOf(const DocumentOp& op) {
  const std::string_view operation = op.operation;
  return operation.starts_with(kBlockPrefix) ? operation.substr(kBlockPrefix.size()) : std::string_view();
}

AttributeSpec sequentialAttribute() {
  return {.name = kSequentialAttribute,
          .type = AttributeType::Boolean,
          .defaultValue = false,
          .help =
              "The instance is a nested Sequential of TransformerEngine, which no fusion crosses the border of: "
              "what is inside fuses with itself only. Off: its ops are fused as if they stood in its place."};
}

FusibleOperation blockOperation(std::string_view name, const DocumentBlock& block) {
  FusibleOperation operation{.name = instanceOf(name), .category = "Blocks"};
  operation.summary =
      fmt::format("A block of this pipeline: {} op{}.", block.ops.size(), block.ops.size() == 1 ? "" : "s");
  for (const DocumentInput& input : block.inputs) operation.inputs.push_back({input.id, {}, {}});
  for (const DocumentOutput& output : block.outputs) operation.outputs.push_back({output.id, {}, {}});
  operation.attributes = {sequentialAttribute()};
  return operation;
}

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
