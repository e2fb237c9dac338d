// NodeSentences: descriptions of nodes and wires of the canvas for assistive technology.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/outline/outline.h"

#include <QObject>

#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

class GraphScene;
class LinkItem;

class NodeSentences : public QObject {
  Q_OBJECT

 public:
  NodeSentences(const Session& session, const GraphScene& scene, QObject* parent = nullptr);

  /// The nodes of the canvas, in the order in which they run.
  std::vector<std::string> nodes();
  /// The sentence of the outline, with the frames around the node, the border before it, whether it was run, and the
  /// error that was measured of it.
  QString of(const std::string& node);
  /// "From fc.y to act.x, 16 × 64 bf16", and what a recipe makes of the tensor.
  static QString of(const LinkItem& link);

 private:
  /// Made when somebody asks.
  const std::vector<OutlineRow>& rows();

  const Session& m_session;
  const GraphScene& m_scene;
  std::optional<std::vector<OutlineRow>> m_rows;
};

}  // namespace fuseline::ui
