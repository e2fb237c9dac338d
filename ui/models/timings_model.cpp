// The tree of timings. The part of a fused op has no time of its own in the fused plan: its cell stays empty.
// SPDX-License-Identifier: Apache-2.0
#include "ui/models/timings_model.h"

#include "ui/theme/format.h"
#include "ui/theme/theme.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

// Internal id of a top-level index; a part carries its group's row.
constexpr quintptr kTopLevel = ~quintptr{0};

constexpr const char* kPeakLabel = "Peak memory";
constexpr const char* kSavedLabel = "Saved for backward";

QString samplesText(const SampleStats& stats) {
  return TimingsModel::tr("median %1, quartiles %2 to %3, fastest %4, %5 samples")
      .arg(formatDurationNs(stats.median), formatDurationNs(stats.lowerQuartile), formatDurationNs(stats.upperQuartile),
           formatDurationNs(stats.minimum))
      .arg(stats.count);
}

QString valueText(const MetricChange& metric, const SampleStats& stats) {
  if (stats.count == 0) return TimingsModel::tr("not there");
  return metric.unit == "bytes" ? formatByteCount(static_cast<std::int64_t>(stats.median)) : samplesText(stats);
}

QString baselineTip(const MetricChange& change) {
  QString text = TimingsModel::tr("baseline: %1\nthis run: %2")
                     .arg(valueText(change, change.base), valueText(change, change.next));
  if (change.isInBoth() && change.unit == "ns")
    text += TimingsModel::tr("\nratio: 95 % interval %1 to %2")
                .arg(change.change.low, 0, 'f', 3)
                .arg(change.change.high, 0, 'f', 3);
  return text;
}

/// In parentheses where it is no speed-up, because both plans have the step.
QString ratioText(const ComparisonRow& row) {
  if (!row.isInBoth) return formatSpeedup(row.speedup);
  return QStringLiteral("(%1×)").arg(QString::number(row.speedup.median, 'f', 2));
}

/// What the plan that is meant to be fast made of the device; of a part, what it made by itself.
const Efficiency& shownEfficiency(const ComparisonRow& row) {
  return row.fused.count > 0 ? row.fusedEfficiency : row.unfusedEfficiency;
}

QString efficiencyLine(const Efficiency& made) {
  const QString text = formatEfficiency(made);
  return text.isEmpty() ? text : u'\n' + text;
}

QVariant headerTip(int column) {
  switch (column) {
    case TimingsModel::BandwidthColumn:
      return TimingsModel::tr("The least traffic, in 1e9 bytes a second. Of the fused plan; parts: of the unfused one");
    case TimingsModel::RateColumn:
      return TimingsModel::tr("Operations by definition, a second. Of the fused plan; parts: of the unfused one");
    case TimingsModel::RoofColumn:
      return TimingsModel::tr(
          "The time over the least that the roofs allow, which were measured in this run.\n"
          "Below 1 where caches are faster than the memory that was measured");
    case TimingsModel::BoundColumn: return TimingsModel::tr("By what the least time is set");
    default: return {};
  }
}

/// Both plans, as the column shows one of them.
QString efficiencyTip(const ComparisonRow& row) {
  QStringList lines;
  if (row.unfusedEfficiency.timeNs > 0.0)
    lines.append(TimingsModel::tr("unfused: %1").arg(formatEfficiency(row.unfusedEfficiency)));
  if (row.fusedEfficiency.timeNs > 0.0)
    lines.append(TimingsModel::tr("fused: %1").arg(formatEfficiency(row.fusedEfficiency)));
  return lines.join(u'\n');
}

QString knownText(double value) { return value > 0.0 ? formatThreeDigits(value) : QString(); }

}  // namespace

TimingsModel::TimingsModel(const Theme& theme, QObject* parent) : QAbstractItemModel(parent), m_theme(theme) {}

void TimingsModel::setRecord(const RunRecord& record) {
  beginResetModel();
  m_groups.clear();
  m_changes.clear();
  const Comparison comparison = compareVariants(record);
  m_endToEndLabel = comparison.endToEnd.label;
  m_longestNs = 0;
  for (const ComparisonRow& row : comparison.rows) {
    if (row.depth == 0 || m_groups.empty()) {
      m_groups.push_back({.row = row});
    } else {
      m_groups.back().parts.push_back(row);
    }
    m_longestNs = std::max({m_longestNs, row.unfused.median, row.fused.median});
  }
  m_groups.push_back({.row = comparison.sum, .isFooter = true});
  m_groups.push_back({.row = comparison.endToEnd, .isFooter = true});
  addTimes(record);
  addMemory(record);
  noteKernels(record);
  noteRates(record);
  endResetModel();
}

/// What measuring cost, and what of a run no step accounts for.
void TimingsModel::addTimes(const RunRecord& record) {
  const auto add = [&](const QString& label, const SamplesOf& samplesOf) {
    ComparisonRow row = compareSamples(record, label.toStdString(), samplesOf);
    if (row.unfused.count + row.fused.count > 0) m_groups.push_back({.row = std::move(row), .isFooter = true});
  };
  const bool isTraced = record.settings.isTraced();
  if (isTraced) add(tr("Of no step"), &VariantRecord::unattributedNs);
  add(isTraced ? tr("With the trace on") : tr("With clocks inside"), &VariantRecord::instrumentedNs);
  add(tr("End to end: the host launches"), &VariantRecord::launchNs);
}

void TimingsModel::noteRates(const RunRecord& record) {
  double largestGflops = 0.0;
  m_hasRates = false;
  m_hasRoofs = record.roofs.has_value();
  const auto note = [&](const ComparisonRow& row) {
    m_hasRates = m_hasRates || shownEfficiency(row).timeNs > 0.0;
    largestGflops = std::max(largestGflops, shownEfficiency(row).gflops());
  };
  for (const Group& group : m_groups) {
    note(group.row);
    std::ranges::for_each(group.parts, note);
  }
  m_ratesAreTera = largestGflops >= 1e3;
}

void TimingsModel::addMemory(const RunRecord& record) {
  const VariantRecord* unfused = record.variant("unfused");
  const VariantRecord* fused = record.variant("fused");
  const auto add = [&](const char* label, std::int64_t VariantRecord::*member) {
    Group group{.isFooter = true};
    group.row.label = label;
    if (unfused) group.unfusedText = formatByteCount(unfused->*member);
    if (fused) group.fusedText = formatByteCount(fused->*member);
    if (unfused && fused) group.row.bytesSaved = unfused->*member - fused->*member;
    m_groups.push_back(std::move(group));
  };
  add(kPeakLabel, &VariantRecord::peakBytes);
  add(kSavedLabel, &VariantRecord::savedForBackwardBytes);
  if ((unfused && unfused->hostBytes > 0) || (fused && fused->hostBytes > 0))
    add("Waiting in the host's memory", &VariantRecord::hostBytes);
}

void TimingsModel::setComparison(const std::optional<RunComparison>& comparison) {
  m_changes.clear();
  const std::map<std::string, std::string> labels = {
      {"median", m_endToEndLabel}, {"peak", kPeakLabel}, {"saved", kSavedLabel}};
  for (const MetricChange& step : comparison ? comparison->steps : std::vector<MetricChange>())
    m_changes[{step.phase, step.name}] = step;
  for (const MetricChange& total : comparison ? comparison->totals : std::vector<MetricChange>())
    if (const auto label = labels.find(total.name); label != labels.end()) m_changes[{"", label->second}] = total;
  if (!m_groups.empty()) Q_EMIT dataChanged(index(0, BaselineColumn), index(rowCount() - 1, BaselineColumn));
}

const MetricChange* TimingsModel::changeAt(const QModelIndex& index) const {
  const ComparisonRow& row = rowAt(index);
  const auto found = m_changes.find({row.phase, row.label});
  return found == m_changes.end() || index.internalId() != kTopLevel ? nullptr : &found->second;
}

void TimingsModel::clear() {
  beginResetModel();
  m_groups.clear();
  m_kernels.clear();
  m_changes.clear();
  m_hasRates = m_hasRoofs = false;
  endResetModel();
}

QModelIndex TimingsModel::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  return createIndex(row, column, parent.isValid() ? static_cast<quintptr>(parent.row()) : kTopLevel);
}

QModelIndex TimingsModel::parent(const QModelIndex& index) const {
  if (!index.isValid() || index.internalId() == kTopLevel) return {};
  return createIndex(static_cast<int>(index.internalId()), 0, kTopLevel);
}

int TimingsModel::rowCount(const QModelIndex& parent) const {
  if (!parent.isValid()) return static_cast<int>(m_groups.size());
  if (parent.column() > 0 || parent.internalId() != kTopLevel) return 0;
  return static_cast<int>(groupAt(parent).parts.size());
}

int TimingsModel::columnCount(const QModelIndex&) const { return ColumnCount; }

const TimingsModel::Group& TimingsModel::groupAt(const QModelIndex& index) const {
  const bool isTop = index.internalId() == kTopLevel;
  return m_groups[isTop ? static_cast<std::size_t>(index.row()) : static_cast<std::size_t>(index.internalId())];
}

const ComparisonRow& TimingsModel::rowAt(const QModelIndex& index) const {
  const Group& group = groupAt(index);
  return index.internalId() == kTopLevel ? group.row : group.parts[static_cast<std::size_t>(index.row())];
}

QString TimingsModel::memoryText(const Group& group, int column) const {
  switch (column) {
    case OpColumn: return toQt(group.row.label);
    case UnfusedColumn: return group.unfusedText;
    case FusedColumn: return group.fusedText;
    case BytesColumn: return formatByteCount(group.row.bytesSaved);
    default: return QString();
  }
}

QString TimingsModel::cellText(const QModelIndex& index) const {
  const Group& group = groupAt(index);
  if (index.column() == BaselineColumn) {
    const MetricChange* const change = changeAt(index);
    return change ? toQt(changeText(*change)) : QString();
  }
  if (!group.unfusedText.isEmpty() || !group.fusedText.isEmpty()) return memoryText(group, index.column());
  const ComparisonRow& row = rowAt(index);
  const bool hasBoth = row.unfused.count > 0 && row.fused.count > 0;
  switch (index.column()) {
    case OpColumn: return toQt(row.label);
    case PassColumn: return toQt(row.phase);
    case UnfusedColumn: return row.isView ? tr("view") : formatTiming(row.unfused);
    case FusedColumn: return row.isView ? QString() : formatTiming(row.fused);
    case SpeedupColumn: return hasBoth && !row.isView ? ratioText(row) : QString();
    case BytesColumn: return row.depth == 0 ? formatByteCount(row.bytesSaved) : QString();
    case LaunchesColumn: return row.depth == 0 ? formatCount(row.launchesSaved) : QString();
    default: return efficiencyText(row, index.column());
  }
}

QString TimingsModel::efficiencyText(const ComparisonRow& row, int column) const {
  const Efficiency& made = shownEfficiency(row);
  switch (column) {
    case BandwidthColumn: return knownText(made.gbps());
    case RateColumn: return knownText(made.gflops() / (m_ratesAreTera ? 1e3 : 1.0));
    case RoofColumn: return made.timesFromRoof() > 0.0 ? knownText(made.timesFromRoof()) + u'×' : QString();
    case BoundColumn: return toQt(made.boundName());
    default: return QString();
  }
}

QVariant TimingsModel::share(const QModelIndex& index) const {
  const ComparisonRow& row = rowAt(index);
  const bool isTime = index.column() == UnfusedColumn || index.column() == FusedColumn;
  if (!isTime || groupAt(index).isFooter || m_longestNs <= 0 || row.isView) return -1.0;
  const SampleStats& stats = index.column() == UnfusedColumn ? row.unfused : row.fused;
  return stats.count > 0 ? stats.median / m_longestNs : -1.0;
}

QVariant TimingsModel::foreground(const QModelIndex& index) const {
  const ComparisonRow& row = rowAt(index);
  const ThemeColors& colors = m_theme.colors();
  if (index.internalId() != kTopLevel || row.isView) return colors.dimText;
  if (index.column() == BaselineColumn) {
    const MetricChange* const change = changeAt(index);
    const std::optional<bool> isBetter = change ? hasImproved(*change) : std::nullopt;
    if (!isBetter) return colors.dimText;
    return *isBetter ? colors.good : colors.warning;
  }
  if (index.column() != SpeedupColumn) return {};
  if (!row.isClear()) return colors.dimText;
  return row.speedup.median > 1.0 ? colors.good : colors.warning;
}

/// A line for how a step was done where there was a choice, and, where the device was traced, for every kernel.
void TimingsModel::noteKernels(const RunRecord& record) {
  m_kernels.clear();
  for (const VariantRecord& variant : record.variants)
    for (const StepRecord& step : variant.steps) {
      QString& text = m_kernels[{variant.name, step.phase, step.name}];
      for (const std::string& way : step.ways) text += u'\n' + toQt(way);
      for (const ActivityRecord& kernel : step.activities)
        text += tr("\n%1  %2 (%3)")
                    .arg(formatDurationNs(summarize(kernel.samplesNs).median), toQt(kernel.name),
                         toQt(kernel.configuration));
    }
}

QString TimingsModel::kernelsText(const QModelIndex& index) const {
  const ComparisonRow& row = rowAt(index);
  const char* const variant = index.column() == FusedColumn ? "fused" : "unfused";
  const auto found = m_kernels.find({variant, row.phase, row.label});
  return found == m_kernels.end() ? QString() : found->second;
}

QString TimingsModel::tip(const QModelIndex& index) const {
  const ComparisonRow& row = rowAt(index);
  if (index.column() == UnfusedColumn && row.unfused.count > 0)
    return samplesText(row.unfused) + efficiencyLine(row.unfusedEfficiency) + kernelsText(index);
  if (index.column() == FusedColumn && row.fused.count > 0)
    return samplesText(row.fused) + efficiencyLine(row.fusedEfficiency) + kernelsText(index);
  if (index.column() >= BandwidthColumn) return efficiencyTip(row);
  if (index.column() == SpeedupColumn && row.fused.count > 0 && row.unfused.count > 0) {
    const QString interval =
        tr("95 % interval %1 to %2").arg(row.speedup.low, 0, 'f', 3).arg(row.speedup.high, 0, 'f', 3);
    if (row.isInBoth) return tr("%1. Both plans have this step: the ratio is noise").arg(interval);
    return row.isClear() ? interval : tr("%1: within the noise").arg(interval);
  }
  if (const MetricChange* const change = index.column() == BaselineColumn ? changeAt(index) : nullptr)
    return baselineTip(*change);
  return cellText(index);
}

QVariant TimingsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  switch (role) {
    case Qt::DisplayRole: return cellText(index);
    case Qt::ToolTipRole: return tip(index);
    case Qt::TextAlignmentRole:
      return static_cast<int>((index.column() <= PassColumn ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case Qt::FontRole:
      return index.internalId() == kTopLevel && (groupAt(index).isFooter || rowAt(index).isFused)
                 ? scaledFont(1.0, QFont::DemiBold)
                 : QVariant();
    case Qt::ForegroundRole: return foreground(index);
    case ShareRole: return share(index);
    case FooterRole: return groupAt(index).isFooter;
    case OwnersRole: {
      QStringList owners;
      for (const std::string& owner : rowAt(index).owners) owners.append(toQt(owner));
      return owners;
    }
    default: return {};
  }
}

QVariant TimingsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole) {
    return static_cast<int>((section <= PassColumn ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  }
  if (role == Qt::ToolTipRole) return headerTip(section);
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case OpColumn: return tr("Op");
    case PassColumn: return tr("Pass");
    case UnfusedColumn: return tr("Unfused");
    case FusedColumn: return tr("Fused");
    case SpeedupColumn: return tr("Speed-up");
    case BaselineColumn: return tr("Against baseline");
    case BytesColumn: return tr("Bytes saved");
    case LaunchesColumn: return tr("Launches saved");
    case BandwidthColumn: return QStringLiteral("GB/s");
    case RateColumn: return m_ratesAreTera ? QStringLiteral("TFLOP/s") : QStringLiteral("GFLOP/s");
    case RoofColumn: return tr("× roof");
    case BoundColumn: return tr("Bound by");
    default: return {};
  }
}

}  // namespace fuseline::ui
