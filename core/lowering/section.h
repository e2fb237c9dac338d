// Section: the parts of lowering a pipeline or a block that are the same for all instances.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/lowering/attribute_resolver.h"
#include "core/lowering/block_table.h"
#include "core/lowering/connectivity.h"
#include "core/lowering/diagnostic_sink.h"
#include "core/ops/catalog.h"
#include "core/tensor/tensor_spec.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace fuseline {

/// An op catalog as a hash map, so that very large pipelines stay linear.
class OperationTable {
 public:
  explicit OperationTable(const OperationCatalog& catalog);
  const FusibleOperation* find(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  const OperationCatalog& m_catalog;
  std::unordered_map<std::string_view, const FusibleOperation*> m_byName;
};

/// Inputs and results of reading sections.
struct SectionTools {
  DiagnosticSink& sink;
  const SymbolTable& symbols;
  AttributeResolver& attributes;
  const OperationTable& operations;
  const BlockTable& blocks;
};

class Section {
 public:
  /// Declared spec of an input. In the pipeline both fields are required; in a block they restrict its instances.
  struct DeclaredInput {
    std::optional<DType> dtype;
    std::optional<Shape> shape;
  };

  /// `name`: of the block; empty for the pipeline. Reports unknown ops, wrong wires, attributes and inputs.
  Section(const DocumentBlock& block, std::string name, const SectionTools& tools);

  const DocumentBlock& block() const { return m_block; }
  const std::string& name() const { return m_name; }
  bool isPipeline() const { return m_name.empty(); }
  const DocumentOp& op(std::size_t index) const { return m_block.ops[index]; }
  /// The op for its attributes; nullptr: unknown, or its ports are.
  const OperationPointer& type(std::size_t op) const { return m_types[op]; }
  const Connectivity& wiring() const { return m_wiring; }
  const ResolvedAttributes& attributes(std::size_t op) const { return m_attributes[op]; }
  const DeclaredInput& input(std::size_t index) const { return m_inputs[index]; }
  /// No wire is wrong, no input unconnected.
  bool isWired() const { return m_isWired && !m_wiring.hasProblems(); }

 private:
  std::vector<OperationPointer> findOperations();
  OperationPointer findOperation(std::size_t index);
  OperationPointer typeOf(std::size_t index, const FusibleOperation& operation);
  void reportUnknownOp(std::size_t index);
  void readInputs();
  std::optional<DType> readDType(const DocumentInput& input, std::size_t index);
  void checkGradient(const DocumentInput& input, std::size_t index);
  std::optional<Shape> readShape(const DocumentInput& input, std::size_t index);
  void resolveAttributes();
  void reportUnconnected();

  /// Diagnostics [first, last) of an op, reported while its ports were determined.
  struct EarlyReport {
    std::size_t op = 0;
    std::size_t first = 0;
    std::size_t last = 0;
  };

  const DocumentBlock& m_block;
  std::string m_name;
  SectionTools m_tools;
  DiagnosticSink& m_sink;
  std::vector<OperationPointer> m_types;
  std::vector<ResolvedAttributes> m_attributes;
  std::vector<EarlyReport> m_early;
  Connectivity m_wiring;
  std::vector<DeclaredInput> m_inputs;
  bool m_isWired = true;
};

/// "/pipeline/ops/3"
std::string opPointer(std::size_t index);

}  // namespace fuseline
