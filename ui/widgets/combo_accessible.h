// Combo boxes for screen readers: the name is what the box sets, the value is its text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline::ui {

/// Qt 6 on Linux reports the current text of a combo box as its name, whatever setAccessibleName() says. Once is
/// enough; more often does no harm.
void installComboAccessibility();

}  // namespace fuseline::ui
