// The context menu at a place of the canvas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QMenu>
#include <QPoint>

#include <memory>

namespace fuseline::ui {

class GraphView;

/// The menu of the window whose groups the commands on the selection have.
inline constexpr const char* kEditMenuName = "editMenu";
/// A property of commands of the canvas: true for keys that only change the view, which are in no context menu.
inline constexpr const char* kViewKeyProperty = "isViewKey";

/// Commands for the port, the reroute point, the selection, the wire or the canvas at this place of the viewport.
std::unique_ptr<QMenu> contextMenuAt(GraphView& view, QPoint place);

}  // namespace fuseline::ui
