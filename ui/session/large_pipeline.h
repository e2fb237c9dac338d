// Pipelines whose panes take long enough to refresh that it matters who sees them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

namespace fuseline::ui {

inline bool isLarge(const Session& session) {
  constexpr std::size_t kManyOps = 100;
  return session.pipeline().document().ops().size() > kManyOps;
}

}  // namespace fuseline::ui
