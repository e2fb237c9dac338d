// Texts that stand outside of classes. For translators lupdate -tr-function-alias tr+=translated finds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QCoreApplication>
#include <QString>

namespace fuseline::ui {

inline QString translated(const char* text) { return QCoreApplication::translate("Fuseline", text); }

}  // namespace fuseline::ui
