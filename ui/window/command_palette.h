// The command palette: every command of the menus, found by typing a part of its name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QMenuBar>

namespace fuseline::ui {

/// Opens it over the window of the menus. Commands that are off at the moment are left out.
void openCommandPalette(const QMenuBar& menus, QWidget* window);

}  // namespace fuseline::ui
