// Tells run files from pipelines, for whoever opens or compares one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

namespace fuseline::ui {

/// Whether it is a run, or a page that was exported of one: by its name, or by what it says of itself.
bool isRunFile(const QString& path);

}  // namespace fuseline::ui
