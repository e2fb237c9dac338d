// NodeStatus: whether an op was timed, and what came of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

namespace fuseline::ui {

enum class NodeStatus { NeverRun, Running, Measured, Stale, Stopped, Failed };

/// "not run", "running".
QString statusName(NodeStatus status);

}  // namespace fuseline::ui
