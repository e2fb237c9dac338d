// Names and extents of an ONNX model, as those of a pipeline: ids, and symbols for extents that may be any.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"
#include "core/support/json.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace fuseline {

/// "/model/act.1" becomes "model_act_1", and a name that is taken gets a number.
class ImportedIds {
 public:
  std::string of(std::string_view name);

 private:
  std::unordered_set<std::string> m_taken;
  std::unordered_map<std::string, int> m_numbers;  // the last of each stem
};

class ImportedSymbols {
 public:
  /// Default of an arbitrary extent, until the user sets another.
  static constexpr std::int64_t kAnyExtent = 128;

  /// defaults: of symbols with a default other than kAnyExtent.
  explicit ImportedSymbols(std::map<std::string, std::int64_t> defaults = {}) : m_defaults(std::move(defaults)) {}

  /// Numbers and expressions of symbols, which are new if the model uses a name for the first time, or has none.
  Json shapeOf(const ::onnx::TensorShapeProto& shape);
  /// Defaults by name.
  const Json& all() const { return m_symbols; }

 private:
  std::string extentOf(const std::string& parameter);
  std::string symbolOf(const std::string& parameter);
  std::int64_t defaultOf(const std::string& parameter) const;

  std::map<std::string, std::int64_t> m_defaults;  // by their names in the model
  ImportedIds m_ids;
  Json m_symbols = Json::object();
  std::map<std::string, std::string> m_names;  // by their names in the model
};

}  // namespace fuseline
