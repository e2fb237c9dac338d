// The one sentence of all panels for a pipeline without a plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

#include <QString>

namespace fuseline::ui {

/// "Nothing is planned while the pipeline has 1 error."; empty when there is a plan. The errors are a link.
QString unplannedText(const Session& session);
/// "Nothing can be measured while the pipeline has 1 error."; likewise.
QString unmeasurableText(const Session& session);
/// Text of a pane without results: `invitation`, or, during a run, that they will come.
QString whileUnmeasured(const Session& session, const QString& invitation);
/// "The pipeline cannot run: Symbol M is ..." and how many errors more; empty when it can. Without a link.
QString whyNotRunnable(const Session& session);

}  // namespace fuseline::ui
