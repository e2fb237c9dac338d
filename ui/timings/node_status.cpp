// Names of statuses.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/node_status.h"

#include <QCoreApplication>

namespace fuseline::ui {

QString statusName(NodeStatus status) {
  const auto translated = [](const char* text) { return QCoreApplication::translate("NodeStatus", text); };
  switch (status) {
    case NodeStatus::NeverRun: return translated("not run");
    case NodeStatus::Running: return translated("running");
    case NodeStatus::Measured: return translated("measured");
    case NodeStatus::Stale: return translated("measured before a change");
    case NodeStatus::Stopped: return translated("stopped early");
    case NodeStatus::Failed: return translated("failed");
  }
  return {};
}

}  // namespace fuseline::ui
