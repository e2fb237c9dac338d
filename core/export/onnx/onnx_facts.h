// Facts about the tensors of an ONNX graph that are known before it runs: element types, shapes, and small integers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_extent.h"
#include "core/export/onnx/onnx_proto.h"
#include "core/export/onnx/onnx_symbols.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace fuseline {

struct OnnxFact {
  std::int32_t elementType = 0;                      // TensorProto.DataType; 0: unknown
  std::optional<OnnxExtents> shape = std::nullopt;   // nothing: the rank is unknown
  std::optional<OnnxExtents> values = std::nullopt;  // row-major, where the shape is numbers; true is 1
};

/// Symbols of a model, and facts learned from operations on them: extents that a layer requires, symbols that are
/// equal. Facts accumulate until a pass over the graph adds none.
class OnnxFactSymbols {
 public:
  /// `asNumbers`: symbols of literal extents that stay numbers. `given`: defaults of other symbols, by name.
  explicit OnnxFactSymbols(std::set<std::string> asNumbers = {}, std::map<std::string, std::int64_t> given = {})
      : m_asNumbers(std::move(asNumbers)), m_given(std::move(given)) {}

  // ---- origins of symbols
  /// An extent as written in the model: a number, a sum of products of names, or any other text.
  OnnxExtent declared(const ::onnx::TensorShapeProto_Dimension& extent, const std::string& place);
  /// A symbol for a number of a model's input. The same wish and number give the same symbol.
  OnnxExtent ofLiteral(const std::string& wish, std::int64_t number);
  /// An extent that nothing is known of, one symbol for each place.
  OnnxExtent fresh(const std::string& place);

  // ---- operations
  /// The extent that two operands of an elementwise operation are broadcast to.
  OnnxExtent broadcast(const OnnxExtent& a, const OnnxExtent& b);
  /// The operation needs them to be the same.
  void equate(const OnnxExtent& a, const OnnxExtent& b);
  /// Rounded toward 0, like integer division. Unknown if no expression equals it.
  OnnxExtent quotient(const OnnxExtent& a, const OnnxExtent& b);
  /// A result that depends on the extent's number cannot be expressed with a symbol: literal extents in it become
  /// numbers again.
  void needNumber(const OnnxExtent& extent);
  void needNumbers(const OnnxExtents& extents);
  bool hasLiteral(const OnnxExtent& extent) const;
  /// Is it a symbol that corresponds to nothing in the model?
  bool isFresh(const OnnxExtent& extent) const;

  /// With each symbol at its default. Nothing where a division leaves a remainder.
  std::optional<std::int64_t> valueOf(const OnnxExtent& extent) const;

  /// Has anything been learned since the last call?
  bool takeChanged() { return std::exchange(m_isChanged, false); }
  /// Defaults of all symbols, by name, and the symbols that replace numbers of the model.
  const std::map<std::string, std::int64_t>& defaults() const { return m_defaults; }
  const std::set<std::string>& literals() const { return m_literals; }
  /// Replaces the general default extent for a symbol of the model, unless one was given.
  void setDefault(const std::string& symbol, std::int64_t value);
  /// From now on the symbol is its default.
  void useDefault(const std::string& symbol) { learn(symbol, m_defaults.at(symbol)); }

 private:
  OnnxExtent known(const std::string& symbol) const;
  OnnxExtent named(const std::string& parameter);
  void learn(const std::string& symbol, const OnnxExtent& extent);
  bool learnFresh(const OnnxExtent& a, const OnnxExtent& b);
  std::string newSymbol(const std::string& wish);

  std::set<std::string> m_asNumbers;
  std::map<std::string, std::int64_t> m_given;
  ImportedIds m_ids;
  std::map<std::string, std::string> m_names;  // by their names in the model, or by place
  std::map<std::string, std::int64_t> m_defaults;
  std::set<std::string> m_literals, m_freshSymbols;
  std::map<std::string, OnnxExtent> m_known;  // extents that proved equal to a symbol
  bool m_isChanged = false;
};

/// Is no symbol in them, and none unknown?
bool areNumbers(const OnnxExtents& extents);

}  // namespace fuseline
