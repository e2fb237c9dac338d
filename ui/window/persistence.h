// Persistence: whether the window reads and writes the user's settings.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline::ui {

/// Tests and screenshots do not.
enum class Persistence { Settings, None };

}  // namespace fuseline::ui
