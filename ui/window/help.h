// What help says: the keys of the panes, and what is to be known about the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <QString>

class QWidget;

namespace fuseline::ui {

/// Keys that belong to no command of the menus, as HTML.
QString paneKeys();
/// What a report of a problem needs: versions, the system, and the devices as the worker named them.
QString environmentText(const Json& devices);
void showAbout(const Json& devices, QWidget* parent);

}  // namespace fuseline::ui
