// The context menu at a place of the canvas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QMenu>
#include <QPoint>

#include <memory>

namespace fuseline::ui {

class GraphView;

/// Commands for the port, the reroute point, the selection, the wire or the canvas at this place of the viewport.
std::unique_ptr<QMenu> contextMenuAt(GraphView& view, QPoint place);

}  // namespace fuseline::ui
