// The help dialogs: the sheet of shortcuts, made from the menus, and the about box.
// SPDX-License-Identifier: Apache-2.0
#pragma once

class QMenuBar;
class QWidget;

namespace fuseline::ui {

/// Lists every menu command with its keys, then the keys of the canvas.
void showShortcuts(const QMenuBar& menus, QWidget* parent);
void showAbout(QWidget* parent);

}  // namespace fuseline::ui
