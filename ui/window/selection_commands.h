// SelectionCommands: commands on what is selected, for the canvas and for the panes that show the same pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"
#include "ui/fusions/plan_panel.h"
#include "ui/outline/outline_panel.h"
#include "ui/window/menu_builder.h"

#include <functional>

namespace fuseline::ui {

/// Commands added here are also in the context menus of the canvas and of the outline.
class SelectionCommands {
 public:
  /// All of them live as long as this.
  SelectionCommands(MenuBuilder& builder, GraphView& view, OutlinePanel& outline, PlanPanel& plan)
      : m_builder(builder), m_view(view), m_outline(outline), m_plan(plan) {}

  /// With a key that the whole window has.
  QAction* add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run);
  /// With a key that means something else to tables and lists.
  QAction* addHere(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run);
  /// With a plain letter as its key, which the other panes need to search by.
  QAction* addLetter(QMenu& menu, const QString& text, Qt::Key key, std::function<void()> run);
  /// The outline and the plan show the pipeline: from there a command is about what is selected in it, and not about
  /// what is selected inside of a block on the canvas.
  std::function<void()> onSelection(std::function<void()> run) const;
  /// A command that is there already.
  void addToCanvas(QAction& action);

 private:
  MenuBuilder& m_builder;
  GraphView& m_view;
  OutlinePanel& m_outline;
  PlanPanel& m_plan;
};

}  // namespace fuseline::ui
