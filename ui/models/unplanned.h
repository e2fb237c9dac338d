// The one sentence of all panels for a pipeline without a plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

#include <QString>

namespace fuseline::ui {

/// "Nothing is planned while the pipeline has 1 error."; empty when there is a plan.
QString unplannedText(const Session& session);

}  // namespace fuseline::ui
