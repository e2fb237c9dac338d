// The table of the columns, and how their cells are written.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/timings_columns.h"

#include "core/profile/stats.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <iterator>

namespace fuseline::ui {

namespace {

using Value = std::optional<double>;
using Format = TimingsColumn::Format;

constexpr auto kOfOnePlan = "Figures are of the fused plan; those of replaced ops are of the unfused plan";

Value valueIf(bool isKnown, double value) { return isKnown ? Value(value) : std::nullopt; }

Value known(double value) { return valueIf(value > 0.0, value); }

Value known(std::int64_t value) { return known(static_cast<double>(value)); }

Value median(const ComparisonRow& row, const SampleStats& stats) {
  return valueIf(stats.count > 0 && !row.isView, stats.median);
}

Value spread(const ComparisonRow& row, const SampleStats& stats) {
  return valueIf(stats.hasSpread() && !row.isView, stats.spreadPercent());
}

QString spreadWords(const ComparisonRow& row, const SampleStats& stats) {
  return spread(row, stats) ? toQt(spreadText(stats)) : QString();
}

/// Statistic of one plan.
Value ofStats(const TimingsRow& row, double SampleStats::*member) {
  return valueIf(median(row.times, row.stats()).has_value(), row.stats().*member);
}

Value quartileRange(const TimingsRow& row) {
  return valueIf(spread(row.times, row.stats()).has_value(), row.stats().upperQuartile - row.stats().lowerQuartile);
}

Value share(const TimingsRow& row) {
  const Value ns = ofStats(row, &SampleStats::median);
  return valueIf(ns && row.planNs > 0.0, 100.0 * ns.value_or(0.0) / row.planNs);
}

Value speedup(const TimingsRow& row) {
  return valueIf(median(row.times, row.times.unfused) && median(row.times, row.times.fused), row.times.speedup.median);
}

/// In parentheses where it is no speed-up, because both plans have the step.
QString speedupWords(const TimingsRow& row) {
  if (!speedup(row)) return {};
  if (!row.times.isInBoth) return formatSpeedup(row.times.speedup);
  return QStringLiteral("(%1×)").arg(QString::number(row.times.speedup.median, 'f', 2));
}

Value saved(const ComparisonRow& row, std::int64_t count) {
  return valueIf(row.depth == 0, static_cast<double>(count));
}

template <typename T>
T fact(const TimingsRow& row, T StepFacts::*member) {
  return row.facts() ? *row.facts().*member : T();
}

Value slowestExcess(const TimingsRow& row) {
  const std::optional<SlowestRank> slowest = slowestRank(fact(row, &StepFacts::rankNs));
  return slowest ? Value(slowest->excessPercent) : std::nullopt;
}

Value busBandwidth(const TimingsRow& row) {
  const double transferNs = fact(row, &StepFacts::transferNs);
  return transferNs > 0.0 ? known(static_cast<double>(fact(row, &StepFacts::wireBytes)) / transferNs) : std::nullopt;
}

Value rooflineShare(const Efficiency& made) {
  return made.timesFromRoofline() > 0.0 ? Value(100.0 / made.timesFromRoofline()) : std::nullopt;
}

QString numberText(Format format, double value, const ColumnUnit& unit) {
  switch (format) {
    case Format::Time: return formatColumnTime(value, unit.size);
    case Format::Bytes:
      return value == 0.0 ? QStringLiteral("–") : toQt(unit.bytesOf(static_cast<std::int64_t>(value)));
    case Format::Percent: return QString::number(value, 'f', 1);
    case Format::Digits: return formatThreeDigits(value / unit.size);
    case Format::Count: return formatCount(static_cast<std::int64_t>(value));
    case Format::Words: break;
  }
  return {};
}

/// "%1": the baseline's letter.
TimingsColumn againstColumn(const char* id, int slot) {
  return {.id = id, .heading = "vs. %1", .format = Format::Percent, .slot = slot};
}

/// Those that are shown until the user chooses.
std::vector<TimingsColumn> firstColumns() {
  const auto time = &TimingsUnits::time;
  return {
      {.id = "op", .heading = "Op", .words = [](const TimingsRow& row) { return toQt(row.times.label); }},
      {.id = "pass", .heading = "Pass", .words = [](const TimingsRow& row) { return toQt(row.times.phase); }},
      {.id = "unfused",
       .heading = "Unfused (%1)",
       .tip = "Median of the rounds",
       .format = Format::Time,
       .unit = time,
       .value = [](const TimingsRow& row) { return median(row.times, row.times.unfused); },
       .words = [](const TimingsRow& row) { return row.times.isView ? translated("view") : QString(); }},
      {.id = "unfusedSpread",
       .heading = "± %",
       .name = "Unfused, ± %",
       .tip = "Half the interquartile range / median",
       .format = Format::Percent,
       .value = [](const TimingsRow& row) { return spread(row.times, row.times.unfused); },
       .words = [](const TimingsRow& row) { return spreadWords(row.times, row.times.unfused); }},
      {.id = "fused",
       .heading = "Fused (%1)",
       .tip = "Median of the rounds",
       .format = Format::Time,
       .unit = time,
       .value = [](const TimingsRow& row) { return median(row.times, row.times.fused); }},
      {.id = "fusedSpread",
       .heading = "± %",
       .name = "Fused, ± %",
       .tip = "Half the interquartile range / median",
       .format = Format::Percent,
       .value = [](const TimingsRow& row) { return spread(row.times, row.times.fused); },
       .words = [](const TimingsRow& row) { return spreadWords(row.times, row.times.fused); }},
      {.id = "speedup",
       .heading = "Speed-up",
       .tip = "Unfused / fused time, per round. ~: not significant. In parentheses: the step is the same in both plans",
       .format = Format::Digits,
       .value = speedup,
       .words = speedupWords},
      againstColumn("baseline", 0),
      againstColumn("baselineB", 1),
      againstColumn("baselineC", 2),
      againstColumn("baselineD", 3),
      {.id = "note",
       .heading = "Note",
       .tip = "Note on the step. F2 or double-click: edit",
       .words = [](const TimingsRow& row) { return row.note; }},
      {.id = "bytesSaved",
       .heading = "Saved (%1)",
       .name = "Bytes saved (%1)",
       .format = Format::Bytes,
       .unit = &TimingsUnits::saved,
       .value = [](const TimingsRow& row) { return saved(row.times, row.times.bytesSaved); }},
      {.id = "launchesSaved",
       .heading = "Launches",
       .name = "Launches saved",
       .tip = "Launches that the fused plan avoids",
       .format = Format::Count,
       .value = [](const TimingsRow& row) { return saved(row.times, row.times.launchesSaved); }},
      {.id = "bandwidth",
       .heading = "GB/s",
       .tip = "Minimum traffic / time, in 1e9 bytes per second. Figures are of the fused plan; those of replaced ops "
              "are of the unfused plan",
       .format = Format::Digits,
       .value = [](const TimingsRow& row) { return known(row.efficiency().gbps()); }},
      {.id = "rate",
       .heading = "%1",
       .tip = "FLOPs of the math (not those executed), per second. Figures are of the fused plan; those of replaced "
              "ops are of the unfused plan",
       .format = Format::Digits,
       .unit = &TimingsUnits::rate,
       .value = [](const TimingsRow& row) { return known(row.efficiency().gflops()); }},
      {.id = "roofline",
       .heading = "× limit",
       .tip = "Time / roofline limit, from the peaks measured in this run.\nBelow 1: caches were faster than the "
              "measured memory bandwidth",
       .format = Format::Digits,
       .value = [](const TimingsRow& row) { return known(row.efficiency().timesFromRoofline()); }},
      {.id = "bound",
       .heading = "Bound by",
       .tip = "Resource that sets the roofline limit",
       .words = [](const TimingsRow& row) { return toQt(row.efficiency().boundName()); }},
      {.id = "slowestRank",
       .heading = "Slowest rank",
       .tip = "Rank with the longest median time, and its excess over the fastest rank. In a collective, the slowest "
              "rank is the one that arrived first, because it waited for the others. In a plan's row, only compute "
              "time is compared",
       .format = Format::Digits,
       .value = slowestExcess,
       .words = [](const TimingsRow& row) { return toQt(slowestRankText(fact(row, &StepFacts::rankNs))); }},
      {.id = "wire",
       .heading = "Sent (%1)",
       .name = "Sent by each rank (%1)",
       .tip = "Bytes on the wire: sent by each rank, with the ring algorithm",
       .format = Format::Bytes,
       .unit = &TimingsUnits::wire,
       .value = [](const TimingsRow& row) { return known(fact(row, &StepFacts::wireBytes)); }},
      {.id = "bus",
       .heading = "Bus GB/s",
       .tip = "Sent bytes / time on the rank that waited least for others",
       .format = Format::Digits,
       .value = busBandwidth},
  };
}

std::vector<TimingsColumn> furtherColumns() {
  const auto time = &TimingsUnits::time;
  return {
      {.id = "share",
       .heading = "Share (%)",
       .tip = "Share of the fused plan's total step time. For replaced ops: share of the unfused plan's total",
       .format = Format::Percent,
       .value = share},
      {.id = "fastest",
       .heading = "Fastest (%1)",
       .tip = kOfOnePlan,
       .format = Format::Time,
       .unit = time,
       .value = [](const TimingsRow& row) { return ofStats(row, &SampleStats::minimum); }},
      {.id = "quartiles",
       .heading = "IQR (%1)",
       .name = "Interquartile range (%1)",
       .tip =
           "Upper minus lower quartile. Figures are of the fused plan; those of replaced ops are of the unfused plan",
       .format = Format::Time,
       .unit = time,
       .value = quartileRange},
      {.id = "percentile5",
       .heading = "P5 (%1)",
       .tip = "5th percentile: 5 % of the rounds were faster than this time. Figures are of the fused plan; those of "
              "replaced ops are of the unfused "
              "plan",
       .format = Format::Time,
       .unit = time,
       .value = [](const TimingsRow& row) { return ofStats(row, &SampleStats::percentile5); }},
      {.id = "percentile95",
       .heading = "P95 (%1)",
       .tip = "5 % of the rounds were slower. Figures are of the fused plan; those of replaced ops are of the unfused "
              "plan",
       .format = Format::Time,
       .unit = time,
       .value = [](const TimingsRow& row) { return ofStats(row, &SampleStats::percentile95); }},
      {.id = "host",
       .heading = "Host (%1)",
       .name = "Host launch time (%1)",
       .tip = "Host time to launch the step, in the round that the timeline shows.\nAvailable if launches were timed "
              "one by one",
       .format = Format::Time,
       .unit = time,
       .value = [](const TimingsRow& row) { return fact(row, &StepFacts::hostLaunchNs); }},
      {.id = "launches",
       .heading = "Launched",
       .name = "Launches",
       .tip = "Number of steps that launch kernels. Figures are of the fused plan; those of replaced ops are of the "
              "unfused plan",
       .format = Format::Count,
       .value = [](const TimingsRow& row) { return known(fact(row, &StepFacts::launches)); }},
      {.id = "flops",
       .heading = "%1",
       .tip = "FLOPs of the math (not those executed). Figures are of the fused plan; those of replaced ops are of the "
              "unfused plan",
       .format = Format::Digits,
       .unit = &TimingsUnits::flops,
       .value = [](const TimingsRow& row) { return known(fact(row, &StepFacts::flops)); }},
      {.id = "bytes",
       .heading = "Bytes (%1)",
       .tip = "Minimum traffic. Figures are of the fused plan; those of replaced ops are of the unfused plan",
       .format = Format::Bytes,
       .unit = &TimingsUnits::traffic,
       .value = [](const TimingsRow& row) { return known(fact(row, &StepFacts::bytes)); }},
      {.id = "intensity",
       .heading = "FLOP/byte",
       .tip = "Arithmetic intensity: FLOPs / byte of minimum traffic",
       .format = Format::Digits,
       .value = [](const TimingsRow& row) { return known(row.efficiency().intensity()); }},
      {.id = "rooflineShare",
       .heading = "% of limit",
       .tip = "Roofline limit / time",
       .format = Format::Percent,
       .value = [](const TimingsRow& row) { return rooflineShare(row.efficiency()); }},
      {.id = "writes",
       .heading = "Output",
       .name = "Shape and dtype of the output",
       .tip = "First tensor that the step writes",
       .words = [](const TimingsRow& row) { return fact(row, &StepFacts::writes); }},
      {.id = "kernel",
       .heading = "Kernel",
       .words = [](const TimingsRow& row) { return fact(row, &StepFacts::kernel); }},
  };
}

std::vector<TimingsColumn> makeColumns() {
  std::vector<TimingsColumn> columns = firstColumns();
  for (TimingsColumn& column : columns) column.isShownFirst = true;
  std::ranges::copy(furtherColumns(), std::back_inserter(columns));
  return columns;
}

StepFacts factsOf(const StepRecord& step) {
  StepFacts facts{.writes = toQt(step.writes),
                  .kernel = toQt(step.kernel),
                  .flops = step.flops,
                  .bytes = step.bytes,
                  .launches = step.isView ? 0 : step.launches,
                  .rankNs = step.rankNs,
                  .wireBytes = step.wireBytes,
                  .transferNs = step.transferNs};
  for (const std::string& way : step.ways) facts.details += u'\n' + toQt(way);
  for (const ActivityRecord& kernel : step.activities)
    facts.details +=
        QStringLiteral("\n%1  %2 (%3)")
            .arg(formatDurationNs(summarize(kernel.samplesNs).median), toQt(kernel.name), toQt(kernel.configuration));
  return facts;
}

/// By step; those that were launched together are no step's.
std::map<int, double> hostLaunches(const Timeline& timeline) {
  std::map<int, double> ns;
  for (const TimelineSpan& launch : timeline.launches) ns[launch.step] += launch.durationNs;
  return ns;
}

void addTo(StepFacts& plan, const StepFacts& step) {
  plan.flops += step.flops;
  plan.bytes += step.bytes;
  plan.launches += step.launches;
  plan.wireBytes += step.wireBytes;
  if (step.hostLaunchNs) plan.hostLaunchNs = plan.hostLaunchNs.value_or(0.0) + *step.hostLaunchNs;
}

const std::optional<MetricChange>& changeOf(const TimingsRow& row, int slot) {
  return row.changes[static_cast<std::size_t>(slot)];
}

/// Percentages and ratios say their unit in each cell.
QString againstTitle(int slot, const TimingsUnits& units) {
  const QString title = translated("vs. %1").arg(QChar(u'A' + slot));
  return units.change == ChangeUnit::Amount ? QStringLiteral("%1 (%2)").arg(title, unitText(units.time)) : title;
}

}  // namespace

// -------------------------------------------------------------------------------------------------------------- facts

FactsOfSteps::FactsOfSteps(const RunRecord& record) {
  for (const VariantRecord& variant : record.variants) add(variant);
}

void FactsOfSteps::add(const VariantRecord& variant) {
  StepFacts plan{.rankNs = computeNsByRank(variant)};
  const std::map<int, double> hostNs = hostLaunches(variant.timeline);
  for (std::size_t i = 0; i < variant.steps.size(); ++i) {
    StepFacts facts = factsOf(variant.steps[i]);
    if (const auto found = hostNs.find(static_cast<int>(i)); found != hostNs.end()) facts.hostLaunchNs = found->second;
    addTo(plan, facts);
    m_facts[{variant.name, variant.steps[i].phase, variant.steps[i].name}] = std::move(facts);
  }
  m_facts[{variant.name, "", ""}] = plan;
}

std::optional<StepFacts> FactsOfSteps::find(const Key& key) const {
  const auto found = m_facts.find(key);
  return found == m_facts.end() ? std::nullopt : std::optional(found->second);
}

std::optional<StepFacts> FactsOfSteps::ofStep(const std::string& variant, const ComparisonRow& row) const {
  return find({variant, row.phase, row.label});
}

std::optional<StepFacts> FactsOfSteps::ofPlan(const std::string& variant) const { return find({variant, "", ""}); }

// ------------------------------------------------------------------------------------------------------------ columns

QString unitText(const ColumnUnit& unit) { return toQt(unit.name).replace(QStringLiteral("us"), QStringLiteral("µs")); }

const std::vector<TimingsColumn>& timingsColumns() {
  static const std::vector<TimingsColumn> columns = makeColumns();
  return columns;
}

QString TimingsColumn::title(const TimingsUnits& units) const {
  if (isOfBaseline()) return againstTitle(slot, units);
  return translated(heading).replace(QStringLiteral("%1"), unit ? unitText(units.*unit) : QString());
}

QString TimingsColumn::fullTitle(const TimingsUnits& units) const {
  if (!name) return title(units);
  return translated(name).replace(QStringLiteral("%1"), unit ? unitText(units.*unit) : QString());
}

std::optional<double> TimingsColumn::valueOf(const TimingsRow& row, const TimingsUnits& units) const {
  if (!isOfBaseline()) return value ? value(row) : std::nullopt;
  const std::optional<MetricChange>& change = changeOf(row, slot);
  return change ? changeValue(*change, units.change) : std::nullopt;
}

QString TimingsColumn::textOf(const TimingsRow& row, const TimingsUnits& units) const {
  if (isOfBaseline()) {
    const std::optional<MetricChange>& change = changeOf(row, slot);
    return change ? changeText(*change, units.change, units.time) : QString();
  }
  if (const QString own = words ? words(row) : QString(); !own.isEmpty() || isOfWords()) return own;
  const Value number = value(row);
  return number ? numberText(format, *number, unit ? units.*unit : ColumnUnit{"", 1.0}) : QString();
}

}  // namespace fuseline::ui
