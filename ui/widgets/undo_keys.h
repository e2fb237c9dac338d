// Routes undo and redo keys while a field has the focus: to its own text, or to the pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QWidget>

#include <functional>

namespace fuseline::ui {

/// Fields take these keys for their text. Here they do so only while isTyping(); else the window's commands get them.
void shareUndoKeys(QWidget& field, std::function<bool()> isTyping);

}  // namespace fuseline::ui
