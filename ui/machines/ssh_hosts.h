// Hosts that the user's ssh configuration names, to choose from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>
#include <QStringList>

namespace fuseline::ui {

/// Names after "Host" in the text of an ssh_config file, without patterns, in their order.
QStringList hostsIn(const QString& config);

/// Those of ~/.ssh/config; none if it cannot be read.
QStringList sshHosts();

}  // namespace fuseline::ui
