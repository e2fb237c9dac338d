// WireLabelCommands: the menu that chooses how much wires say of their tensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_scene.h"

#include <QMenu>
#include <QObject>

namespace fuseline::ui {

class WireLabelCommands : public QObject {
  Q_OBJECT

 public:
  /// isKept: in the user's settings, which decide at once.
  WireLabelCommands(GraphScene& scene, bool isKept, QObject* parent);

  void addMenu(QMenu& viewMenu);

 private:
  void choose(WireLabels labels);

  GraphScene& m_scene;
  bool m_isKept;
};

}  // namespace fuseline::ui
