// BlockDoors: the ways into the blocks of the canvas and out of them: open in place, enter, leave.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_parts.h"

#include <QObject>
#include <QPointF>
#include <QSet>
#include <QString>

#include <string>

namespace fuseline::ui {

class BlockDoors : public QObject {
  Q_OBJECT

 public:
  explicit BlockDoors(const CanvasParts& parts) : m_parts(parts) {}

  /// Goes into the selected instance of a block.
  void enterSelected();
  /// To the block around the one that is shown, or to the pipeline.
  void leave();
  /// Opens the selected instances of blocks in place, or closes them.
  void toggleSelected();
  /// On the arrow of an instance: opens or closes it. False: there is no arrow here.
  bool press(QPointF position);
  /// At a double click on this node: goes to an op within an open block, or enters the block. False: it is no block.
  bool activate(const std::string& id, QPointF position);

 Q_SIGNALS:
  /// A sentence for the status line.
  void hint(const QString& sentence);

 private:
  void tell(const Verdict& verdict);

  CanvasParts m_parts;
};

}  // namespace fuseline::ui
