// BlockCommands: goes into blocks and out again, from the menu Edit and from other panes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"
#include "ui/fusions/plan_panel.h"
#include "ui/inspector/inspector_panel.h"
#include "ui/outline/outline_panel.h"
#include "ui/problems/problems_panel.h"

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
  /// Rows about ops inside of blocks lead there; what is picked of the pipeline leads out, also to the instance that
  /// one is in.
  void follow(const OutlinePanel& outline);
  void follow(const PlanPanel& plan);
  void follow(const ProblemsPanel& problems);
  /// The inspector opens the op that is selected inside.
  void lead(InspectorPanel& inspector);

 private:
  void say(const Verdict& verdict);
  void leave();
  void showProperties(InspectorPanel& inspector);
  void askForName(const QString& node);
  void add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run);

  GraphScene& m_scene;
  GraphView& m_view;
};

}  // namespace fuseline::ui
