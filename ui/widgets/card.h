// Cards: boxes one below the other, for things that are too different for a table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QFrame>
#include <QLabel>
#include <QVBoxLayout>

namespace fuseline::ui {

/// Gives a frame the look of a card. Its object name becomes "card".
void makeCardOf(QFrame& frame, const Theme& theme);
/// A framed box with a vertical layout. Its object name is "card".
QFrame* makeCard(const Theme& theme, QWidget* parent);
QVBoxLayout& layoutOf(QFrame& card);

/// Text that wraps, and can be selected with the mouse.
QLabel* makeSentence(const QString& text, QWidget* parent);

}  // namespace fuseline::ui
