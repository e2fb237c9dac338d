// Files that are dragged over the window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QMimeData>
#include <QString>
#include <QStringList>

namespace fuseline::ui {

/// Paths to open: a folder stands for the config of the model in it, or for its newest run. Empty: not all can be
/// opened.
QStringList filesIn(const QMimeData& data);

/// The effect of a drop in words: it opens, imports or compares with the first file, and opens the others elsewhere.
enum class DropEffect { Open, Compare };
QString dropText(const QStringList& files, DropEffect effect);

}  // namespace fuseline::ui
