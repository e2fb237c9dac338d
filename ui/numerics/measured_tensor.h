// Measurements of a pipeline's tensors by runs: amax and quantization error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "ui/session/session.h"

#include <QString>

#include <map>
#include <string>

namespace fuseline::ui {

class MeasuredTensors {
 public:
  /// Uses the last numerics and the last capture, if they belong to the current pipeline.
  explicit MeasuredTensors(const Session& session);

  bool isEmpty() const { return m_copies.empty() && !m_capture; }
  /// "amax 3.21", "amax 3.21 · 0.4 % underflow as e4m3 (tensor)"; empty: nothing was measured of it.
  QString textOf(const Graph& graph, const Value& value) const;

 private:
  const CopyNumerics* copyOf(const Graph& graph, const Value& value) const;

  std::map<std::string, const CopyNumerics*> m_copies;  // by name
  const LastCapture* m_capture = nullptr;
};

}  // namespace fuseline::ui
