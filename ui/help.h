// What help says: the keys of the panes, and the about box.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

class QWidget;

namespace fuseline::ui {

/// Keys that belong to no command of the menus, as HTML.
QString paneKeys();
void showAbout(QWidget* parent);

}  // namespace fuseline::ui
