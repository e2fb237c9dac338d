// Chip on a wire whose tensor is quantized.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/links.h"
#include "core/graph/graph.h"

#include <QString>

#include <map>
#include <string_view>
#include <utility>

namespace fuseline::ui {

/// Empty where nothing is quantized.
struct QuantizerChip {
  QString text;  // "e4m3"
  QString tip;   // what becomes of input, weight and gradient of the op at the end of the wire
};

/// The chips of a graph, which must outlive this. Its quantized inputs are found once: a tensor may have thousands of
/// consumers.
class QuantizerChips {
 public:
  explicit QuantizerChips(const Graph& graph);
  QuantizerChip at(const Value& value, const Link& link) const;

 private:
  void addReader(const Value& value, const Node& node);

  std::map<std::pair<const Value*, std::string_view>, const Node*> m_readers;  // by the op or instance they are part of
};

}  // namespace fuseline::ui
