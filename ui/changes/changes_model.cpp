// Rows of a comparison. Every text of a change comes from core, where the command line takes it from, too.
// SPDX-License-Identifier: Apache-2.0
#include "ui/changes/changes_model.h"

#include "core/compare/change_text.h"
#include "core/edit/block_edits.h"
#include "core/support/text.h"
#include "ui/theme/format.h"

#include <algorithm>
#include <span>

namespace fuseline::ui {

namespace {

using Kind = DocumentChange::Kind;
using ChangedSection = DocumentChange::Section;

struct RowLook {
  QString what;
  QString kind;
  QString details;
  QColor color;
};

QStandardItem* addRow(QStandardItem& group, const RowLook& look, const QString& key) {
  QList<QStandardItem*> row = {new QStandardItem(look.what), new QStandardItem(look.kind),
                               new QStandardItem(look.details)};
  QFont bold;
  bold.setBold(true);
  row[ChangesModel::KindColumn]->setFont(bold);
  for (QStandardItem* item : row) {
    item->setEditable(false);
    item->setToolTip(item->text());
    if (item->column() != ChangesModel::DetailsColumn) item->setForeground(look.color);
  }
  row[ChangesModel::DetailsColumn]->setData(QVariant(), Qt::ForegroundRole);
  row.front()->setData(-1, ChangesModel::ChangeRole);
  row.front()->setData(key, ChangesModel::KeyRole);
  row.front()->setAccessibleText(QStringList{look.what, look.kind, look.details}.join(u' '));
  group.appendRow(row);
  return row.front();
}

QString groupTitle(const DocumentChange& change) {
  const QString section = toQt(sectionName(change.section));
  return change.block.empty() ? section : ChangesModel::tr("%1 in block %2").arg(section, toQt(change.block));
}

QString keyOf(const DocumentChange& change) {
  return QStringList{toQt(sectionName(change.section)), toQt(change.block), toQt(kindName(change.kind)),
                     toQt(change.id)}
      .join(u'/');
}

QString whatOf(const DocumentChange& change) {
  return change.id.empty() ? toQt(sectionName(change.section)) : toQt(change.id);
}

/// Also of blocks that stand in others.
QStringList instancesOf(const std::string& block, const PipelineDocument& document) {
  QStringList ids;
  for (const DocumentOp& op : document.ops())
    if (const auto used = blocksUsedBy(document, std::span(&op, 1)); std::ranges::find(used, block) != used.end())
      ids.append(toQt(op.id));
  return ids;
}

/// Nodes of a change; for a change inside a block, its instances.
QStringList nodesOf(const DocumentChange& change, const PipelineDocument& document) {
  if (!change.block.empty()) return instancesOf(change.block, document);
  if (change.section == ChangedSection::Blocks) return instancesOf(change.id, document);
  const std::string id = change.kind == Kind::Renamed ? change.newId : parseEndpoint(change.id).node;
  const bool isNode = change.section == ChangedSection::Ops || change.section == ChangedSection::Inputs ||
                      change.section == ChangedSection::Wires || change.section == ChangedSection::Outputs;
  const bool isThere = change.kind != Kind::Removed || change.section == ChangedSection::Wires;
  return isNode && isThere && document.idExists(id) ? QStringList{toQt(id)} : QStringList();
}

QString listTitle(const std::string& list) {
  if (list == "forward") return ChangesModel::tr("fused plan, forward");
  if (list == "backward") return ChangesModel::tr("fused plan, backward");
  return ChangesModel::tr("fused plan, quantized outputs");
}

/// The nodes of the document that these ops of the graph came from.
QStringList ownersOf(const Graph& graph, const std::vector<std::string>& ops) {
  QStringList owners;
  for (const Node& node : graph.nodes())
    if (std::ranges::find(ops, node.id) != ops.end() && !owners.contains(toQt(node.owner)))
      owners.append(toQt(node.owner));
  return owners;
}

QStringList stillThere(QStringList ids, const PipelineDocument& document) {
  ids.removeIf([&](const QString& id) { return !document.idExists(id.toStdString()); });
  return ids;
}

QString valueText(const PlanFigure& figure, std::int64_t value) {
  return figure.isBytes ? toQt(formatBytes(value)) : QString::number(value);
}

/// "-5.8 %"; empty where there was nothing.
QString percentText(const PlanFigure& figure) {
  if (figure.base == figure.next) return ChangesModel::tr("same");
  if (figure.base == 0) return QString();
  const double percent = 100.0 * (static_cast<double>(figure.next) / static_cast<double>(figure.base) - 1.0);
  return QStringLiteral("%1%2 %").arg(percent > 0 ? QStringLiteral("+") : QString()).arg(percent, 0, 'f', 1);
}

// ---- What was measured.

QString amountText(const MetricChange& metric, const SampleStats& stats) {
  return metric.unit == "x" ? QStringLiteral("%1x").arg(stats.median, 0, 'f', 3) : formatDurationNs(stats.median);
}

/// "1.20 ms → 0.90 ms"; of a step that only one has, its time.
QString amountsText(const MetricChange& metric) {
  if (!metric.isInBoth()) return amountText(metric, metric.base.count > 0 ? metric.base : metric.next);
  return QStringLiteral("%1 → %2").arg(amountText(metric, metric.base), amountText(metric, metric.next));
}

QString metricTitle(const MetricChange& metric) {
  if (!metric.phase.empty()) return ChangesModel::tr("%1, %2").arg(toQt(metric.name), toQt(metric.phase));
  if (metric.name == "median") return ChangesModel::tr("end-to-end time");
  if (metric.name == "unfused") return ChangesModel::tr("end-to-end time, unfused");
  return ChangesModel::tr("speed-up from fusion");
}

RowLook lookOf(const MetricChange& metric, const ThemeColors& colors) {
  const std::optional<bool> isBetter = hasImproved(metric);
  return {.what = metricTitle(metric),
          .kind = toQt(changeText(metric)),
          .details = amountsText(metric),
          .color = !isBetter   ? colors.dimText
                   : *isBetter ? colors.good
                               : colors.warning};
}

QString stepKey(const MetricChange& step) {
  return QStringLiteral("measured/%1/%2").arg(toQt(step.phase), toQt(step.name));
}

QStringList idsOf(const std::vector<std::string>& owners) {
  QStringList ids;
  for (const std::string& owner : owners) ids.append(toQt(owner));
  return ids;
}

/// Ops of a step; for a removed step, its former ops.
QStringList ownersOf(const MeasuredChange& measured, const MetricChange& step) {
  for (const RunRecord* record : {measured.next, measured.base})
    if (const VariantRecord* variant = record->variant(measured.comparison.variant))
      if (const StepRecord* found = variant->find(step.name, step.phase)) return idsOf(found->owners);
  return {};
}

QString figureTitle(const PlanFigure& figure) {
  const QString plan =
      std::string_view(figure.variant) == "fused" ? ChangesModel::tr("fused plan") : ChangesModel::tr("unfused plan");
  return ChangesModel::tr("%1, %2").arg(toQt(figure.title), plan);
}

/// "3 ops added, 1 removed"; empty where no op changed.
QString opsText(const ChangeCounts& counts) {
  QStringList parts;
  const auto add = [&](int count, const QString& verb) {
    if (count == 0) return;
    const QString number =
        parts.isEmpty() ? counted(count, ChangesModel::tr("op"), ChangesModel::tr("ops")) : QString::number(count);
    parts.append(QStringLiteral("%1 %2").arg(number, verb));
  };
  add(counts.added, ChangesModel::tr("added"));
  add(counts.removed, ChangesModel::tr("removed"));
  add(counts.changed, ChangesModel::tr("changed"));
  add(counts.renamed, ChangesModel::tr("renamed"));
  return parts.join(QStringLiteral(", "));
}

/// "4 → 16 steps"; empty if both are equal, or without a plan. one: the text for 1.
QString figureText(const PipelineDifference& difference, std::string_view name, const QString& one,
                   const QString& many) {
  const PlanFigure* const figure = findFigure(difference, "fused", name);
  if (!figure || valueText(*figure, figure->base) == valueText(*figure, figure->next)) return QString();
  return (figure->next == 1 ? one : many).arg(valueText(*figure, figure->next), valueText(*figure, figure->base));
}

/// "fused: 4 → 16 steps, peak memory 13 MiB → 94.3 MiB"
QString planText(const PipelineDifference& difference) {
  const QString peak = ChangesModel::tr("peak memory %2 → %1");
  QStringList parts = {
      figureText(difference, "launches", ChangesModel::tr("%2 → %1 step"), ChangesModel::tr("%2 → %1 steps")),
      figureText(difference, "peakBytes", peak, peak)};
  parts.removeAll(QString());
  return parts.isEmpty() ? QString() : ChangesModel::tr("fused: %1").arg(parts.join(QStringLiteral(", ")));
}

}  // namespace

QColor changeColor(const ThemeColors& colors, Kind kind) {
  switch (kind) {
    case Kind::Added: return colors.good;
    case Kind::Removed: return colors.error;
    case Kind::Changed: return colors.note;
    case Kind::Renamed: return colors.joint;
  }
  return colors.text;
}

QString changeSign(Kind kind) { return kind == Kind::Removed ? QStringLiteral("−") : QString(QChar(markOf(kind))); }

ChangesModel::ChangesModel(QObject* parent) : QStandardItemModel(0, ColumnCount, parent) {
  setHorizontalHeaderLabels({tr("Subject"), tr("Change"), tr("Old → new")});
}

void ChangesModel::show(const ComparisonResult& result, const MeasuredChange* measured, const Theme& theme) {
  removeRows(0, rowCount());
  addDocumentChanges(result, theme.colors());
  addPlanChanges(result, theme.colors());
  if (measured) addMeasured(*measured, result.document, theme.colors());
  addFigures(result.difference, theme.colors());
}

QStandardItem* ChangesModel::addGroup(const QString& title) {
  QList<QStandardItem*> row;
  for (int column = 0; column < ColumnCount; ++column) {
    auto* item = new QStandardItem(column == WhatColumn ? title : QString());
    item->setEditable(false);
    item->setSelectable(false);
    row.append(item);
  }
  QFont bold;
  bold.setBold(true);
  row.front()->setFont(bold);
  appendRow(row);
  return row.front();
}

void ChangesModel::addDocumentChanges(const ComparisonResult& result, const ThemeColors& colors) {
  QStandardItem* group = nullptr;
  const std::vector<DocumentChange>& changes = result.difference.changes;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const DocumentChange& change = changes[i];
    if (!group || group->text() != groupTitle(change)) group = addGroup(groupTitle(change));
    QStandardItem* row = addRow(*group,
                                {.what = whatOf(change),
                                 .kind = changeSign(change.kind) + u' ' + toQt(kindName(change.kind)),
                                 .details = toQt(fieldsText(change)).replace(QStringLiteral("->"), QStringLiteral("→")),
                                 .color = changeColor(colors, change.kind)},
                                keyOf(change));
    row->setData(static_cast<int>(i), ChangeRole);
    row->setData(nodesOf(change, result.document), NodesRole);
  }
}

void ChangesModel::addPlanChanges(const ComparisonResult& result, const ThemeColors& colors) {
  for (const PlanListDifference& list : result.difference.plans) {
    QStandardItem* group = addGroup(listTitle(list.list));
    for (const PlanLine& line : list.lines) {
      if (line.mark == ' ') continue;
      const bool isNew = line.mark == '+';
      const Analysis& analysis = isNew ? *result.analysis : *result.baseAnalysis;
      QStandardItem* row = addRow(*group,
                                  {.what = toQt(line.text),
                                   .kind = isNew ? tr("+ added") : tr("− removed"),
                                   .details = {},
                                   .color = changeColor(colors, isNew ? Kind::Added : Kind::Removed)},
                                  toQt(list.list) + line.mark + toQt(line.text));
      row->setData(stillThere(ownersOf(analysis.graph(), line.ops), result.document), NodesRole);
    }
  }
}

void ChangesModel::addFigures(const PipelineDifference& difference, const ThemeColors& colors) {
  if (difference.figures.empty() || difference.changes.empty()) return;
  QStandardItem* group = addGroup(tr("predicted"));
  for (const PlanFigure& figure : difference.figures) {
    const bool isSame = figure.base == figure.next;
    const QString base = valueText(figure, figure.base);
    addRow(*group,
           {.what = figureTitle(figure),
            .kind = percentText(figure),
            .details = isSame ? base : QStringLiteral("%1 → %2").arg(base, valueText(figure, figure.next)),
            .color = isSame ? colors.dimText : colors.text},
           QString());
  }
}

/// Totals, then the steps that changed, and not by chance.
void ChangesModel::addMeasured(const MeasuredChange& measured, const PipelineDocument& document,
                               const ThemeColors& colors) {
  QStandardItem* group = addGroup(tr("measured interleaved, %1 plan").arg(toQt(measured.comparison.variant)));
  for (const MetricChange& total : measured.comparison.totals)
    if (total.unit == "ns" || total.unit == "x") addRow(*group, lookOf(total, colors), QString());
  for (const MetricChange& step : measured.comparison.steps) {
    if (step.isInBoth() && !step.change.isSignificant()) continue;
    QStandardItem* row = addRow(*group, lookOf(step, colors), stepKey(step));
    row->setData(stillThere(ownersOf(measured, step), document), NodesRole);
  }
}

QList<QModelIndex> ChangesModel::changeRows() const {
  QList<QModelIndex> rows;
  for (int group = 0; group < rowCount(); ++group) {
    const QModelIndex parent = index(group, 0);
    for (int row = 0; row < rowCount(parent); ++row)
      if (const QModelIndex child = index(row, 0, parent); !child.data(KeyRole).toString().isEmpty())
        rows.append(child);
  }
  return rows;
}

QModelIndex ChangesModel::rowOfChange(int change) const {
  for (const QModelIndex& row : changeRows())
    if (row.data(ChangeRole).toInt() == change) return row;
  return {};
}

QModelIndex ChangesModel::rowOfKey(const QString& key) const {
  for (const QModelIndex& row : changeRows())
    if (row.data(KeyRole).toString() == key) return row;
  return {};
}

QString comparisonText(const ComparisonResult& result) {
  const PipelineDifference& difference = result.difference;
  if (difference.changes.empty()) return ChangesModel::tr("No differences: both pipelines are equivalent.");
  const ChangeCounts counts = countChanges(difference.changes);
  QStringList parts = {opsText(counts)};
  if (counts.others > 0)
    parts.append(counted(counts.others, ChangesModel::tr("other change"), ChangesModel::tr("other changes")));
  parts.append(planText(difference));
  parts.removeAll(QString());
  QString text = parts.join(QStringLiteral("; ")) + u'.';
  if (!result.baseAnalysis->isRunnable())
    text += ChangesModel::tr(" Plans cannot be compared: the other pipeline has errors.");
  else if (!result.analysis->isRunnable())
    text += ChangesModel::tr(" Plans cannot be compared: this pipeline has errors.");
  return text;
}

}  // namespace fuseline::ui
