// CanvasCommands: what is done to the selection of the canvas: the clipboard, blocks, and what ops are there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_parts.h"
#include "ui/session/edits.h"

#include <QObject>

#include <string>

namespace fuseline::ui {

/// Each is one undo step.
class CanvasCommands : public QObject {
  Q_OBJECT

 public:
  explicit CanvasCommands(const CanvasParts& parts);

  /// Adds a palette entry behind the selected node, or the last one.
  void insertAfterSelection(const std::string& entry);
  /// Puts a palette entry where a wire was dropped, and joins the wire to it.
  void insertAtWire(const std::string& entry, const LooseWire& wire, QPointF position);
  void removeSelected(Reconnect reconnect);
  /// Puts an op of a palette entry in an op's place.
  void replace(const std::string& id, const std::string& entry);
  /// Repeats the selected op this number of times in a row, and selects all copies.
  void repeatSelected(int count);
  /// Bypasses the selected ops, or uses them again.
  void toggleBypass();
  /// Switches the selected fusion, or all that touch the selection, off at this place, or on again.
  void toggleFusions();

  void copySelected() const;
  /// Copies the selected ops and removes them.
  void cutSelected();
  /// Into the selected wire where there is one that takes it; else beside what is there, with the reason as a hint.
  void paste();
  /// Beside what is there, with the wires from nodes that were not copied: both copies read the same tensors.
  void pasteWithWires();
  void duplicateSelected();
  /// Selects what was put in.
  void apply(const FragmentEdit& pasted);

  /// Moves the selected ops into a block of this name; an instance takes their place and the selection.
  void makeBlockOfSelected(const std::string& name);
  /// Makes a block of what repeats in a row, such as the layers of a model, whatever is selected.
  void foldRepeats();
  /// Puts the ops of their blocks in place of the selected instances.
  void expandSelected();

 Q_SIGNALS:
  /// A sentence for the status line.
  void hint(const QString& sentence);

 private:
  OrphanedOutputs orphans() const;
  void pasteText(const QString& text);

  CanvasParts m_parts;
};

}  // namespace fuseline::ui
