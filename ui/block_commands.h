// BlockCommands: goes into blocks and out again, from the menu Edit and from other panes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"
#include "ui/panels/inspector_panel.h"
#include "ui/panels/outline_panel.h"
#include "ui/panels/problems_panel.h"

#include <QKeySequence>
#include <QMenu>
#include <QObject>

#include <functional>

namespace fuseline::ui {

class BlockCommands : public QObject {
  Q_OBJECT

 public:
  BlockCommands(GraphScene& scene, GraphView& view, QObject* parent);

  void addTo(QMenu& editMenu);
  /// Rows about ops inside of blocks lead there.
  void follow(const OutlinePanel& outline);
  void follow(const ProblemsPanel& problems);
  /// The inspector opens the op that is selected inside.
  void lead(InspectorPanel& inspector);

 private:
  void add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run);

  GraphScene& m_scene;
  GraphView& m_view;
};

}  // namespace fuseline::ui
