// Composed edits of core, with the sets of ids and the texts of Qt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/chain_edits.h"
#include "core/edit/fragments.h"
#include "core/edit/links.h"
#include "core/edit/node_edits.h"
#include "core/plan/fusion_toggle.h"

#include <QPoint>
#include <QSet>
#include <QString>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fuseline::ui {

std::set<std::string> idsOf(const QSet<QString>& ids);
QSet<QString> idsOf(const std::set<std::string>& ids);

Edit removeNodes(const PipelineDocument& document, const QSet<QString>& ids, const std::vector<Link>& links,
                 Reconnect reconnect, OrphanedOutputs outputs = OrphanedOutputs::Removed);
Result<Edit> toggleBypass(const PipelineDocument& document, const QSet<QString>& ids);
QString copyFragment(const PipelineDocument& document, const QSet<QString>& ids,
                     const std::vector<std::string>& frames = {});
Result<FragmentEdit> pasteFragment(const PipelineDocument& document, const QString& text, QPoint offset,
                                   IncomingWires incoming = IncomingWires::Dropped);
Result<FragmentEdit> pasteIntoWire(const PipelineDocument& document, const QString& text, const Link& link);
std::optional<FusionToggle> fusionToggle(const PipelineDocument& document, const Analysis& analysis,
                                         const QSet<QString>& selection, const QString& rule);

}  // namespace fuseline::ui
