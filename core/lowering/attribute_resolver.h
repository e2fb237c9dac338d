// From attributes as written to attributes an op can use: types, ranges, choices, defaults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/lowering/symbol_table.h"
#include "core/ops/operation.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

struct ResolvedAttributes {
  Attributes values;
  /// Missing required attributes. Reported by the caller, which may know a fitting value from the op's input.
  std::vector<const AttributeSpec*> missing;
  /// Something was reported; the values are incomplete.
  bool hasFailed = false;
};

class AttributeResolver {
 public:
  AttributeResolver(const SymbolTable& symbols, DiagnosticSink& sink) : m_symbols(symbols), m_sink(sink) {}

  /// `index` is the op's in the document. An unknown attribute is an error, but does not keep the op from being
  /// inferred: it is ignored.
  ResolvedAttributes resolve(const DocumentOp& op, std::size_t index, const FusibleOperation& operation);

 private:
  struct Field {
    const DocumentOp& op;
    const AttributeSpec& spec;
    Spot spot;
  };

  void checkNames(const DocumentOp& op, std::size_t index, const FusibleOperation& operation);
  std::optional<AttributeValue> read(const Field& field, const Json& value);
  std::optional<AttributeValue> readInteger(const Field& field, const Json& value);
  std::optional<AttributeValue> readReal(const Field& field, const Json& value);
  std::optional<AttributeValue> readList(const Field& field, const Json& value);
  std::optional<AttributeValue> readText(const Field& field, const Json& value);
  std::optional<AttributeValue> badName(const Field& field, const std::string& text);
  std::optional<AttributeValue> wrongType(const Field& field, const Json& value);
  bool isInRange(const Field& field, double value, const std::string& text);

  const SymbolTable& m_symbols;
  DiagnosticSink& m_sink;
};

/// Removes the op's name from the start of its error; in a diagnostic the sentence begins with the id instead.
std::string withoutName(const std::string& message, const std::string& name);
/// An op refuses its attributes: an error at the attribute that it names, or at all of them.
void reportBadAttribute(DiagnosticSink& sink, const DocumentOp& op, std::size_t index,
                        const FusibleOperation& operation, const Error& error);
/// "/pipeline/ops/3/attributes/eps".
std::string attributePointer(std::size_t index, const std::string& name);
/// "Set in_features to 1024".
Repair setAttribute(const std::string& id, const std::string& name, Json value);

}  // namespace fuseline
