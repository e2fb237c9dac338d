// Sentences of nodes and wires.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/node_sentences.h"

#include "ui/canvas/graph_scene.h"
#include "ui/numerics/numerics_model.h"
#include "ui/theme/format.h"

#include <QTextDocumentFragment>

#include <algorithm>

namespace fuseline::ui {

NodeSentences::NodeSentences(const Session& session, const GraphScene& scene, QObject* parent)
    : QObject(parent), m_session(session), m_scene(scene) {
  const auto forget = [this] { m_rows.reset(); };
  connect(&scene, &GraphScene::itemsChanged, this, forget);
  connect(&session.runner(), &Runner::finished, this, forget);
  connect(&session.setup(), &RunSetup::passChanged, this, forget);
}

const std::vector<OutlineRow>& NodeSentences::rows() {
  if (!m_rows) m_rows = outlineOf(m_session);
  return *m_rows;
}

std::vector<std::string> NodeSentences::nodes() {
  std::vector<std::string> ids;
  for (const OutlineRow& row : rows())
    if (const std::string id = m_scene.scope().idAt(row.place);
        m_scene.scope().placeOf(id) == row.place && m_scene.node(id))
      ids.push_back(id);
  return ids;
}

QString NodeSentences::of(const std::string& node) {
  const std::string place = m_scene.scope().placeOf(node);
  std::vector<OutlineRow> own;
  if (!m_rows) own = outlineOf(m_session, place.substr(0, place.find('.')));
  const std::vector<OutlineRow>& rows = m_rows ? *m_rows : own;
  const auto row = std::ranges::find(rows, place, &OutlineRow::place);
  const NodeItem* item = m_scene.node(node);
  if (row == rows.end() || !item) return toQt(node);
  QStringList parts = {sentenceOf(*row)};
  for (const DocumentFrame* frame : framesAround(m_scene.scope().document(), item->sceneBox().toAlignedRect()))
    if (!frame->title.empty()) parts.append(tr("in frame %1").arg(toQt(frame->title)));
  for (const BorderItem* border : m_scene.canvasItems().borders())
    if (border->border().to == node)
      parts.append(tr("after the boundary of a nested Sequential, between %1 and %2")
                       .arg(border->textBefore(), border->textBehind()));
  const auto status = item->look().status;
  if (status && *status != NodeStatus::NeverRun) parts.append(statusName(*status));
  if (const auto& half = item->look().forwardHeat; half && !half->text.isEmpty())
    parts.append(tr("forward %1").arg(half->text));
  if (const auto& half = item->look().backwardHeat; half && !half->text.isEmpty())
    parts.append(tr("backward %1").arg(half->text));
  if (const auto error = item->look().rmsError) parts.append(tr("RMS error %1").arg(formatError(*error)));
  return parts.join(QStringLiteral(", "));
}

QString NodeSentences::of(const LinkItem& link) {
  QStringList parts = {tr("From %1 to %2").arg(toQt(toString(link.link().from)), toQt(toString(link.link().to)))};
  if (link.spec()) parts.append(formatSpec(*link.spec()));
  const QString quantizer = QTextDocumentFragment::fromHtml(link.quantizerTip()).toPlainText().simplified();
  if (!quantizer.isEmpty()) parts.append(quantizer);
  return parts.join(QStringLiteral(", "));
}

}  // namespace fuseline::ui
