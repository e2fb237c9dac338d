// Common events of self-drawn views: they handle keys before the window does, and show tooltips.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>
#include <QWidget>

#include <functional>

namespace fuseline::ui {

/// A key that the view knows, pressed with no other modifiers than these, is not taken for a command of the window.
void takeOwnKey(QEvent& event, Qt::KeyboardModifiers modifiers, const std::function<bool(int key)>& isOwn);

/// Shows what there is to say of the place under the pointer, or nothing. False: the event asks for something else.
bool answerToolTip(QEvent& event, QWidget& view, const std::function<QString(QPoint)>& tipAt);

}  // namespace fuseline::ui
