// The values of a document's symbols, and integers that may be written with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/lowering/diagnostic_sink.h"
#include "core/lowering/expression.h"
#include "core/lowering/lowering.h"

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace fuseline {

class SymbolTable {
 public:
  /// Evaluates every symbol; reports those that cannot be, such as a cycle.
  SymbolTable(const PipelineDocument& document, const LoweringOptions& options, DiagnosticSink& sink);

  /// The value of a symbol; nullopt: there is none, or it was reported.
  std::optional<std::int64_t> value(const std::string& name) const;

  /// A number, symbol or expression of the file. `what` begins the messages ("fc1: in_features"), `replace` makes
  /// the edit that puts another value in its place. nullopt after a report, or silently if a symbol it needs is
  /// itself wrong.
  std::optional<std::int64_t> integer(const Json& value, const std::string& what, const Spot& spot,
                                      const std::function<Edit(Json)>& replace) const;

  /// A text in which the symbols that stand within brackets are replaced by their values. What is no symbol stays.
  std::string withValues(std::string_view text) const;
  /// A text in which the expressions of symbols that stand in braces, "{H / D}", are replaced by their values. What is
  /// no expression, or names no symbol, stays.
  std::string withExpressions(std::string_view text) const;

 private:
  void applyOverrides(const LoweringOptions& options);
  void evaluateFrom(const std::string& first);
  void evaluateOne(const std::string& name, const Json& value);
  void reportCycle(const std::vector<std::string>& path, const std::string& name);
  std::optional<std::int64_t> expression(const std::string& text, const std::string& what, const Spot& spot,
                                         const std::function<Edit(Json)>& replace) const;
  std::optional<std::int64_t> real(double value, const std::string& what, const Spot& spot,
                                   const std::function<Edit(Json)>& replace) const;

  DiagnosticSink& m_sink;
  std::unordered_map<std::string, std::int64_t> m_values;
  std::unordered_set<std::string> m_failed;
  std::unordered_map<std::string, const Json*> m_written;
  std::vector<std::string> m_names;
};

}  // namespace fuseline
