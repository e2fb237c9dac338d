// Each function has its counterpart in core.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/edits.h"

#include "ui/theme/format.h"

namespace fuseline::ui {

std::set<std::string> idsOf(const QSet<QString>& ids) {
  std::set<std::string> own;
  for (const QString& id : ids) own.insert(id.toStdString());
  return own;
}

QSet<QString> idsOf(const std::set<std::string>& ids) {
  QSet<QString> own;
  for (const std::string& id : ids) own.insert(toQt(id));
  return own;
}

Edit removeNodes(const PipelineDocument& document, const QSet<QString>& ids, const std::vector<Link>& links,
                 Reconnect reconnect, OrphanedOutputs outputs) {
  return fuseline::removeNodes(document, idsOf(ids), links, reconnect, outputs);
}

Result<Edit> toggleBypass(const PipelineDocument& document, const QSet<QString>& ids) {
  return fuseline::toggleBypass(document, idsOf(ids));
}

QString copyFragment(const PipelineDocument& document, const QSet<QString>& ids,
                     const std::vector<std::string>& frames) {
  return toQt(fuseline::copyFragment(document, idsOf(ids), frames));
}

Result<FragmentEdit> pasteFragment(const PipelineDocument& document, const QString& text, QPoint offset,
                                   IncomingWires incoming) {
  return fuseline::pasteFragment(document, text.toStdString(), {offset.x(), offset.y()}, incoming);
}

Result<FragmentEdit> pasteIntoWire(const PipelineDocument& document, const QString& text, const Link& link) {
  return fuseline::pasteIntoWire(document, text.toStdString(), link);
}

std::optional<FusionToggle> fusionToggle(const PipelineDocument& document, const Analysis& analysis,
                                         const QSet<QString>& selection, const QString& rule) {
  return fuseline::fusionToggle(document, analysis, idsOf(selection), rule.toStdString());
}

}  // namespace fuseline::ui
