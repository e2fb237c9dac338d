// What a key does to the fusions of a selection: pure, from a document and its analysis to one undoable edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/fusion_edits.h"

#include <QSet>
#include <QString>

#include <optional>

namespace fuseline::ui {

/// What one key does to the fusions of a selection.
struct FusionToggle {
  Edit edit;
  QString hint;  // which ones, and how to get them back
};
/// Off, if one that touches the selection is applied; on, if they are only off at their places. `rule` narrows it to
/// that rule; empty: all of them. Nothing: there is no fusion to switch.
std::optional<FusionToggle> fusionToggle(const PipelineDocument& document, const Analysis& analysis,
                                         const QSet<QString>& selection, const QString& rule);

}  // namespace fuseline::ui
