// The canvas for screen readers: its nodes and wires as children of the view, in the order in which they run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline::ui {

/// Once is enough; more often does no harm.
void installGraphAccessibility();

}  // namespace fuseline::ui
