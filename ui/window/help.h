// Help texts: keys of the panes, and information about the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <QString>

class QWidget;

namespace fuseline::ui {

/// Keys that belong to no command of the menus, as HTML.
QString paneKeys();
/// Information for bug reports: versions, the system, and the worker's devices.
QString environmentText(const Json& devices);
void showAbout(const Json& devices, QWidget* parent);

}  // namespace fuseline::ui
