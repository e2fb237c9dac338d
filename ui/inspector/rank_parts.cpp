// Looks up placements by the names that a run binds.
// SPDX-License-Identifier: Apache-2.0
#include "ui/inspector/rank_parts.h"

#include "core/collective/communicator.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <QStringList>

#include <fmt/format.h>

namespace fuseline::ui {

namespace {

bool communicates(const Node& node) { return node.operation->communication.has_value(); }

QString wholeShape(const Shape& local, const RankPart& part) {
  QStringList extents;
  for (int axis = 0; axis < static_cast<int>(local.size()); ++axis)
    extents.append(QString::number(local[static_cast<std::size_t>(axis)] * (part.isSlicedAt(axis) ? part.ranks : 1)));
  return u'[' + extents.join(QStringLiteral(", ")) + u']';
}

}  // namespace

QString partShape(const Shape& local, const RankPart& part, const QString& separator) {
  QStringList extents;
  for (int axis = 0; axis < static_cast<int>(local.size()); ++axis) {
    const std::int64_t extent = local[static_cast<std::size_t>(axis)];
    extents.append(part.isSlicedAt(axis) ? QStringLiteral("%1/%2").arg(extent * part.ranks).arg(part.ranks)
                                         : QString::number(extent));
  }
  return extents.join(separator);
}

QString placementText(const Shape& local, const RankPart& part) {
  if (part.ranks == 1) return {};
  switch (part.shard.kind) {
    case Shard::Kind::Whole: return translated("replicated on %1 ranks").arg(part.ranks);
    case Shard::Kind::Summand: return translated("partial: the tensor is the sum over %1 ranks").arg(part.ranks);
    case Shard::Kind::Slice: break;
  }
  const QString text = translated("sharded along axis %1 of %2").arg(part.shard.axis).arg(wholeShape(local, part));
  return part.shard.parts == 1 ? text
                               : text + translated("; the axis has %1 equal parts, and each rank holds a share of each")
                                            .arg(part.shard.parts);
}

RankParts::RankParts(const Analysis& analysis) : m_analysis(analysis) {
  if (analysis.ranks > 1 && analysis.fusedPlan)
    m_collectives = plannedCollectives(*analysis.fusedPlan, analysis.graph(), analysis.ranks);
}

RankPart RankParts::named(const std::string& name) const {
  const auto shard = m_analysis.shards.find(name);
  return {.shard = shard == m_analysis.shards.end() ? Shard() : shard->second, .ranks = m_analysis.ranks};
}

RankPart RankParts::ofParameter(const std::string& name) const { return named(name); }

RankPart RankParts::of(const Value& value) const {
  if (value.producer < 0) return named(value.name);
  const Node& node = m_analysis.graph().node(value.producer);
  return named(fmt::format("{}:{}", node.id, node.operation->outputs[static_cast<std::size_t>(value.port)].name));
}

std::vector<WireCommunication> RankParts::along(const Link& link, const Value& value) const {
  std::vector<WireCommunication> found;
  if (m_analysis.ranks == 1) return found;
  const Graph& graph = m_analysis.graph();
  if (value.producer >= 0) {
    const Node& producer = graph.node(value.producer);
    const bool isImplied = communicates(producer) && producer.id != link.from.node && producer.isAt(link.from.node);
    if (isImplied) found.push_back(communicationAt(producer, false));
  }
  for (const Use& use : value.uses) {
    const Node& reader = graph.node(use.node);
    if (!communicates(reader) || !reader.isAt(link.to.node)) continue;
    found.push_back(communicationAt(reader, true));
    break;
  }
  return found;
}

WireCommunication RankParts::communicationAt(const Node& node, bool isAtEnd) const {
  const CommunicationPasses& passes = *node.operation->communication;
  WireCommunication made{.isAtEnd = isAtEnd};
  if (passes.forward)
    made.collective = toQt(collectiveName(*passes.forward));
  else if (passes.backward)
    made.collective = translated("%1 in backward").arg(toQt(collectiveName(*passes.backward)));
  made.tip = communicationOf(node.owner);
  return made;
}

QString RankParts::communicationOf(const std::string& op) const {
  QStringList lines;
  for (const PlannedCollective& each : m_collectives)
    if (each.op == op)
      lines.append(translated("%1 %2, %3 sent by each rank")
                       .arg(toQt(each.collective), toQt(each.phase), formatByteCount(each.wireBytes)));
  return lines.join(u'\n');
}

}  // namespace fuseline::ui
