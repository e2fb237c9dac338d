// The tree of timings. The part of a fused op has no time of its own in the fused plan: its cell stays empty.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/timings_model.h"

#include "core/profile/step_sums.h"
#include "ui/theme/baseline_colors.h"
#include "ui/theme/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/tip_lines.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fuseline::ui {

namespace {

// Internal id of a top-level index; a part carries its group's row.
constexpr quintptr kTopLevel = ~quintptr{0};

constexpr int kSlotMarkPx = 14;
constexpr const char* kPeakLabel = "Peak memory";
constexpr const char* kSavedLabel = "Saved for backward";

QString samplesText(const SampleStats& stats) {
  return TimingsModel::tr("median %1, quartiles %2 to %3, fastest %4, %5 samples")
      .arg(formatDurationNs(stats.median), formatDurationNs(stats.lowerQuartile), formatDurationNs(stats.upperQuartile),
           formatDurationNs(stats.minimum))
      .arg(stats.count);
}

QString valueText(const MetricChange& metric, const SampleStats& stats) {
  if (stats.count == 0) return TimingsModel::tr("not present");
  return metric.unit == "bytes" ? formatByteCount(static_cast<std::int64_t>(stats.median)) : samplesText(stats);
}

QString baselineTip(const MetricChange& change) {
  QString text = TimingsModel::tr("baseline: %1\nthis run: %2")
                     .arg(valueText(change, change.base), valueText(change, change.next));
  if (change.isInBoth()) text += u'\n' + changeInterval(change);
  return text;
}

QString efficiencyLine(const Efficiency& made) {
  const QString text = formatEfficiency(made);
  return text.isEmpty() ? text : u'\n' + text;
}

QString speedupTip(const ComparisonRow& row) {
  if (row.fused.count == 0 || row.unfused.count == 0) return {};
  const QString interval =
      TimingsModel::tr("95 % interval %1 to %2").arg(row.speedup.low, 0, 'f', 3).arg(row.speedup.high, 0, 'f', 3);
  if (row.isInBoth)
    return TimingsModel::tr("%1. The step is the same in both plans, so the ratio is noise").arg(interval);
  return row.isClear() ? interval : TimingsModel::tr("%1: not statistically significant").arg(interval);
}

ColumnUnit flopUnitFor(double largest) {
  if (largest >= 1e12) return {"TFLOP", 1e12};
  return largest >= 1e9 ? ColumnUnit{"GFLOP", 1e9} : ColumnUnit{"MFLOP", 1e6};
}

Steps allSteps(const VariantRecord& variant) {
  Steps steps;
  for (const StepRecord& step : variant.steps) steps.push_back(&step);
  return steps;
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

const TimingsColumn& columnAt(int column) { return timingsColumns()[static_cast<std::size_t>(column)]; }

Qt::Alignment alignmentOf(int column) {
  return (columnAt(column).isOfWords() ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter;
}

TimingsRow stepRow(const ComparisonRow& times, const FactsOfSteps& facts, const ComparisonRow& sum) {
  TimingsRow row{.times = times, .unfused = facts.ofStep("unfused", times)};
  if (times.depth == 0) row.fused = facts.ofStep("fused", times);
  row.planNs = row.isOfFused() ? sum.fused.median : sum.unfused.median;
  return row;
}

TimingsRow sumRow(const ComparisonRow& times, const FactsOfSteps& facts) {
  return {.times = times,
          .unfused = facts.ofPlan("unfused"),
          .fused = facts.ofPlan("fused"),
          .ofPlan = [](const VariantRecord& variant) { return sumPerRound(allSteps(variant)); }};
}

QString detailsOf(const std::optional<StepFacts>& facts) { return facts ? facts->details : QString(); }

/// Empty: the total has no row.
std::string totalLabel(const std::string& total, const std::string& endToEndLabel) {
  if (total == "median") return endToEndLabel;
  if (total == "peak") return kPeakLabel;
  return total == "saved" ? kSavedLabel : "";
}

/// Behind a change, the fuller the larger it is.
QVariant tintOf(const MetricChange& change, QColor color) {
  constexpr double kFullest = 0.25;  // so that the text can be read
  const double strength = changeStrength(change);
  color.setAlphaF(static_cast<float>(kFullest * strength));
  return strength > 0.0 ? QVariant(color) : QVariant();
}

}  // namespace

TimingsModel::TimingsModel(const Theme& theme, QObject* parent) : QAbstractItemModel(parent), m_theme(theme) {}

void TimingsModel::setRecord(const RunRecord& record) {
  beginResetModel();
  m_groups.clear();
  m_comparisons.clear();
  const Comparison comparison = compareVariants(record);
  m_endToEndLabel = comparison.endToEnd.label;
  addSteps(record, comparison);
  addTimes(record);
  addMemory(record);
  chooseUnits(comparison);
  endResetModel();
  setNotes(record);
}

void TimingsModel::addSteps(const RunRecord& record, const Comparison& comparison) {
  const FactsOfSteps facts(record);
  m_longestNs = 0;
  for (const ComparisonRow& times : comparison.rows) {
    TimingsRow row = stepRow(times, facts, comparison.sum);
    if (times.depth == 0 || m_groups.empty())
      m_groups.push_back({.row = std::move(row)});
    else
      m_groups.back().parts.push_back(std::move(row));
    m_longestNs = std::max({m_longestNs, times.unfused.median, times.fused.median});
  }
  m_groups.push_back({.row = sumRow(comparison.sum, facts), .isFooter = true});
  m_groups.push_back({.row = {.times = comparison.endToEnd, .ofPlan = &VariantRecord::endToEndNs}, .isFooter = true});
}

/// Adds the cost of measuring, and the time outside of steps.
void TimingsModel::addTimes(const RunRecord& record) {
  const auto add = [&](const QString& label, const SamplesOf& samplesOf) {
    ComparisonRow row = compareSamples(record, label.toStdString(), samplesOf);
    if (row.unfused.count + row.fused.count > 0)
      m_groups.push_back({.row = {.times = std::move(row), .ofPlan = samplesOf}, .isFooter = true});
  };
  const bool isTraced = record.settings.isTraced();
  if (isTraced) add(tr("Outside of steps"), &VariantRecord::unattributedNs);
  add(isTraced ? tr("End to end, with tracing") : tr("End to end, with step timing"), &VariantRecord::instrumentedNs);
  add(tr("Host launches"), &VariantRecord::launchNs);
}

/// By the largest value of each column.
void TimingsModel::chooseUnits(const Comparison& comparison) {
  double largestGflops = 0.0;
  StepFacts largest;
  const auto note = [&](const TimingsRow& row) {
    largestGflops = std::max(largestGflops, row.efficiency().gflops());
    if (!row.facts()) return;
    largest.flops = std::max(largest.flops, row.facts()->flops);
    largest.bytes = std::max(largest.bytes, row.facts()->bytes);
    largest.wireBytes = std::max(largest.wireBytes, row.facts()->wireBytes);
  };
  for (const Group& group : m_groups) {
    note(group.row);
    std::ranges::for_each(group.parts, note);
  }
  const ComparisonUnits units = unitsOf(comparison);
  m_fittingTime = units.time;
  m_units = {.time = m_chosenTime.value_or(m_fittingTime),
             .saved = units.bytes,
             .traffic = byteUnitFor(static_cast<double>(largest.bytes)),
             .wire = byteUnitFor(static_cast<double>(largest.wireBytes)),
             .change = m_units.change};
  m_units.flops = flopUnitFor(static_cast<double>(largest.flops));
  if (largestGflops >= 1e3) m_units.rate = {"TFLOP/s", 1e3};
}

void TimingsModel::addMemory(const RunRecord& record) {
  const VariantRecord* unfused = record.variant("unfused");
  const VariantRecord* fused = record.variant("fused");
  const auto add = [&](const char* label, std::int64_t VariantRecord::*member) {
    Group group{.isFooter = true};
    group.row.times.label = label;
    if (unfused) group.unfusedText = formatByteCount(unfused->*member);
    if (fused) group.fusedText = formatByteCount(fused->*member);
    if (unfused && fused) group.row.times.bytesSaved = unfused->*member - fused->*member;
    m_groups.push_back(std::move(group));
  };
  add(kPeakLabel, &VariantRecord::peakBytes);
  add(kSavedLabel, &VariantRecord::savedForBackwardBytes);
  if ((unfused && unfused->hostBytes > 0) || (fused && fused->hostBytes > 0))
    add("Offloaded to host memory", &VariantRecord::hostBytes);
}

// ----------------------------------------------------------------------------------------------------------- baselines

/// Steps are those of the plan that both runs have. nullptr: the change is of no row.
TimingsRow* TimingsModel::rowOf(const MetricChange& change, const std::string& variant) {
  const std::string label = change.phase.empty() ? totalLabel(change.name, m_endToEndLabel) : change.name;
  if (label.empty()) return nullptr;
  const auto isIt = [&](const TimingsRow& row) { return row.times.label == label && row.times.phase == change.phase; };
  for (Group& group : m_groups) {
    if (isIt(group.row)) return &group.row;
    const auto part = std::ranges::find_if(group.parts, isIt);
    if (variant == "unfused" && part != group.parts.end()) return &*part;
  }
  return nullptr;
}

void TimingsModel::compare(const ComparedBaseline& compared) {
  const auto take = [&](const MetricChange& change) {
    TimingsRow* row = rowOf(change, compared.comparison.variant);
    if (row) row->changes[static_cast<std::size_t>(compared.baseline.slot)] = change;
  };
  std::ranges::for_each(compared.comparison.totals, take);
  std::ranges::for_each(compared.comparison.steps, take);
}

void TimingsModel::setComparisons(std::vector<ComparedBaseline> comparisons) {
  removeGone();
  forEachRow([](TimingsRow& row) { row.changes = {}; });
  if (!m_groups.empty()) addGone(comparisons);
  m_comparisons = std::move(comparisons);
  for (const ComparedBaseline& compared : m_comparisons) compare(compared);
  tellColumns(BaselineColumn, LastBaselineColumn);
  Q_EMIT headerDataChanged(Qt::Horizontal, BaselineColumn, LastBaselineColumn);
}

void TimingsModel::removeGone() {
  for (int row = rowCount() - 1; row >= 0; --row) {
    if (!m_groups[static_cast<std::size_t>(row)].row.isGone) continue;
    beginRemoveRows({}, row, row);
    m_groups.erase(m_groups.begin() + row);
    endRemoveRows();
  }
}

/// In the order of their baselines' plans, once each.
void TimingsModel::addGone(const std::vector<ComparedBaseline>& comparisons) {
  for (const auto& [baseline, comparison] : comparisons)
    for (const MetricChange& step : comparison.steps) {
      if (step.next.count > 0 || rowOf(step, comparison.variant)) continue;
      const StepRecord* old = baseline.record->variant(comparison.variant)->find(step.name, step.phase);
      const auto place = std::ranges::find_if(m_groups, &Group::isFooter);
      const int row = static_cast<int>(place - m_groups.begin());
      beginInsertRows({}, row, row);
      TimingsRow gone{.times = {.label = step.name, .phase = step.phase, .owners = old->owners}, .isGone = true};
      m_groups.insert(place, {.row = std::move(gone)});
      endInsertRows();
    }
}

void TimingsModel::setChangeUnit(ChangeUnit unit) {
  m_units.change = unit;
  tellColumns(BaselineColumn, LastBaselineColumn);
  Q_EMIT headerDataChanged(Qt::Horizontal, BaselineColumn, LastBaselineColumn);
}

void TimingsModel::setTimeUnit(std::optional<ColumnUnit> unit) {
  m_chosenTime = unit;
  m_units.time = unit.value_or(m_fittingTime);
  if (m_groups.empty()) return;
  tellColumns(0, columnCount() - 1);
  Q_EMIT headerDataChanged(Qt::Horizontal, 0, columnCount() - 1);
}

// --------------------------------------------------------------------------------------------------------------- notes

void TimingsModel::setNotes(const RunRecord& record) {
  forEachRow([&](TimingsRow& row) { row.note = toQt(record.noteOf(row.times.label, row.times.phase)); });
  tellColumns(NoteColumn, NoteColumn);
}

/// Totals are no steps.
Qt::ItemFlags TimingsModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractItemModel::flags(index);
  const bool isEditable = index.isValid() && index.column() == NoteColumn && !groupAt(index).isFooter;
  return isEditable ? flags | Qt::ItemIsEditable : flags;
}

bool TimingsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable)) return false;
  const ComparisonRow& times = rowAt(index).times;
  Q_EMIT noteWanted({.step = times.label, .phase = times.phase, .text = value.toString().trimmed().toStdString()});
  return true;
}

// ---------------------------------------------------------------------------------------------------------------- rows

template <class Act>
void TimingsModel::forEachRow(Act act) {
  for (Group& group : m_groups) {
    act(group.row);
    std::ranges::for_each(group.parts, act);
  }
}

void TimingsModel::tellColumns(int first, int last, const QList<int>& roles) {
  const auto tell = [&](const QModelIndex& parent) {
    const int numRows = rowCount(parent);
    if (numRows > 0) Q_EMIT dataChanged(index(0, first, parent), index(numRows - 1, last, parent), roles);
  };
  tell({});
  for (int row = 0; row < rowCount(); ++row) tell(index(row, 0));
}

void TimingsModel::setStale(bool isStale) {
  if (std::exchange(m_isStale, isStale) == isStale) return;
  tellColumns(0, ColumnCount - 1, {Qt::FontRole});
}

void TimingsModel::clear() {
  beginResetModel();
  m_groups.clear();
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

const TimingsRow* TimingsModel::endToEnd() const {
  const auto isIt = [this](const Group& group) { return group.isFooter && group.row.times.label == m_endToEndLabel; };
  const auto found = std::ranges::find_if(m_groups, isIt);
  return found == m_groups.end() ? nullptr : &found->row;
}

const TimingsRow& TimingsModel::rowAt(const QModelIndex& index) const {
  const Group& group = groupAt(index);
  return index.internalId() == kTopLevel ? group.row : group.parts[static_cast<std::size_t>(index.row())];
}

QString TimingsModel::memoryText(const Group& group, const TimingsColumn& column) const {
  if (column.isOfBaseline()) return column.textOf(group.row, m_units);
  switch (&column - timingsColumns().data()) {
    case UnfusedColumn: return group.unfusedText;
    case FusedColumn: return group.fusedText;
    case OpColumn:
    case BytesColumn: return column.textOf(group.row, m_units);
    default: return QString();
  }
}

QString TimingsModel::cellText(const QModelIndex& index) const {
  const TimingsColumn& column = columnAt(index.column());
  const Group& group = groupAt(index);
  return group.isMemory() ? memoryText(group, column) : column.textOf(rowAt(index), m_units);
}

QVariant TimingsModel::sortKey(const QModelIndex& index) const {
  const TimingsColumn& column = columnAt(index.column());
  if (!column.isOfWords()) {
    const std::optional<double> value = column.valueOf(rowAt(index), m_units);
    return value ? QVariant(*value) : QVariant();
  }
  const QString words = cellText(index);
  return words.isEmpty() ? QVariant() : QVariant(words);
}

QVariant TimingsModel::share(const QModelIndex& index) const {
  const int column = index.column();
  if (groupAt(index).isFooter || (column != UnfusedColumn && column != FusedColumn && column != ShareColumn))
    return -1.0;
  const std::optional<double> value = columnAt(column).value(rowAt(index));
  const double whole = column == ShareColumn ? 100.0 : m_longestNs;
  return value && whole > 0.0 ? *value / whole : -1.0;
}

QVariant TimingsModel::foreground(const QModelIndex& index) const {
  const TimingsRow& row = rowAt(index);
  const ThemeColors& colors = m_theme.colors();
  if (const int slot = columnAt(index.column()).slot; slot >= 0) {
    const std::optional<MetricChange>& change = row.changes[static_cast<std::size_t>(slot)];
    const std::optional<bool> isBetter = change ? hasImproved(*change) : std::nullopt;
    if (!isBetter) return colors.dimText;
    return *isBetter ? colors.good : colors.warning;
  }
  if (index.internalId() != kTopLevel || row.times.isView || row.isGone) return colors.dimText;
  if (index.column() != SpeedupColumn) return {};
  if (!row.times.isClear()) return colors.dimText;
  return row.times.speedup.median > 1.0 ? colors.good : colors.warning;
}

QVariant TimingsModel::background(const QModelIndex& index) const {
  const int slot = columnAt(index.column()).slot;
  const auto change = slot < 0 ? std::nullopt : rowAt(index).changes[static_cast<std::size_t>(slot)];
  return change ? tintOf(*change, foreground(index).value<QColor>()) : QVariant();
}

QVariant TimingsModel::font(const QModelIndex& index) const {
  const bool isHeavy = index.internalId() == kTopLevel && (groupAt(index).isFooter || rowAt(index).times.isFused);
  const bool isSlanted = m_isStale && !columnAt(index.column()).isOfWords();
  const bool isStruck = index.column() == OpColumn && rowAt(index).isGone;
  if (!isHeavy && !isSlanted && !isStruck) return {};
  QFont font = scaledFont(1.0, isHeavy ? QFont::DemiBold : QFont::Normal);
  font.setStrikeOut(isStruck);
  font.setItalic(isSlanted);
  return font;
}

QString TimingsModel::tip(const QModelIndex& index) const {
  const TimingsRow& row = rowAt(index);
  const ComparisonRow& times = row.times;
  if (const int slot = columnAt(index.column()).slot; slot >= 0) {
    const std::optional<MetricChange>& change = row.changes[static_cast<std::size_t>(slot)];
    return change ? baselineTip(*change) : QString();
  }
  switch (index.column()) {
    case UnfusedColumn:
    case UnfusedSpreadColumn:
      if (times.unfused.count == 0) break;
      return cappedTip(samplesText(times.unfused) + efficiencyLine(times.unfusedEfficiency) + detailsOf(row.unfused));
    case FusedColumn:
    case FusedSpreadColumn:
      if (times.fused.count == 0) break;
      return cappedTip(samplesText(times.fused) + efficiencyLine(times.fusedEfficiency) + detailsOf(row.fused));
    case SpeedupColumn: return speedupTip(times);
    case BandwidthColumn:
    case RateColumn:
    case RooflineColumn:
    case RooflineShareColumn:
    case BoundColumn: return efficiencyTip(times);
    default: break;
  }
  return cellText(index);
}

QVariant TimingsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  switch (role) {
    case Qt::EditRole:
    case Qt::DisplayRole: return cellText(index);
    case Qt::ToolTipRole: return tip(index);
    case Qt::TextAlignmentRole: return static_cast<int>(alignmentOf(index.column()));
    case Qt::FontRole: return font(index);
    case Qt::ForegroundRole: return foreground(index);
    case Qt::BackgroundRole: return background(index);
    case ShareRole: return share(index);
    case SortRole: return sortKey(index);
    case FooterRole: return groupAt(index).isFooter;
    case OwnersRole: {
      QStringList owners;
      for (const std::string& owner : rowAt(index).times.owners) owners.append(toQt(owner));
      return owners;
    }
    default: return {};
  }
}

/// Header of a baseline's column; an invalid value means the standard header.
QVariant TimingsModel::baselineHeader(const TimingsColumn& column, int role) const {
  const auto found = std::ranges::find_if(
      m_comparisons, [&](const ComparedBaseline& each) { return each.baseline.slot == column.slot; });
  if (found == m_comparisons.end()) return {};
  const QString& name = found->baseline.name;
  switch (role) {
    case Qt::AccessibleTextRole: return tr("%1: %2").arg(column.title(m_units), name);
    case Qt::ToolTipRole:
      return tr("Time of the %1 plan vs. baseline %2: %3\n▼ less, ▲ more, ~ not significant")
          .arg(toQt(found->comparison.variant), found->baseline.letter(), name);
    case Qt::DecorationRole: return baselineMark(m_theme, column.slot, kSlotMarkPx);
    default: return {};
  }
}

QVariant TimingsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  const TimingsColumn& column = columnAt(section);
  if (const QVariant own = column.isOfBaseline() ? baselineHeader(column, role) : QVariant(); own.isValid()) return own;
  switch (role) {
    case Qt::DisplayRole: return column.title(m_units);
    case Qt::AccessibleTextRole: return column.fullTitle(m_units);
    case Qt::ToolTipRole: return column.tip ? tr(column.tip) : column.fullTitle(m_units);
    case Qt::TextAlignmentRole: return static_cast<int>(alignmentOf(section));
    case Qt::InitialSortOrderRole:
      return static_cast<int>(column.isOfWords() ? Qt::AscendingOrder : Qt::DescendingOrder);
    default: return {};
  }
}

}  // namespace fuseline::ui
