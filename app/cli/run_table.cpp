// Lays out a comparison for the terminal.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/run_table.h"

#include "app/cli/pass_lines.h"
#include "app/cli/stat_cells.h"
#include "app/cli/table.h"
#include "core/profile/cold_costs.h"
#include "core/profile/doubts.h"
#include "core/profile/headline.h"
#include "core/profile/launch_wait.h"
#include "core/support/field_table.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

Field<ComparisonRow> statsField(std::string key, SampleStats ComparisonRow::*member) {
  using Stats = SampleStats;
  static const FieldTable<Stats> table(
      {field("medianNs", &Stats::median, "Time per round."),
       field("lowerQuartileNs", &Stats::lowerQuartile, "Time per round."),
       field("upperQuartileNs", &Stats::upperQuartile, "Time per round."),
       field("percentile5Ns", &Stats::percentile5, "Per round, interpolated like quartiles."),
       field("percentile95Ns", &Stats::percentile95, "Per round, interpolated like quartiles."),
       field("minimumNs", &Stats::minimum, "Time per round."), field("count", &Stats::count, "Number of rounds.")});
  return {std::move(key), schema::orNull(table.schema()),
          [member](const ComparisonRow& row) { return (row.*member).count == 0 ? Json() : table.toJson(row.*member); }};
}

Field<ComparisonRow> efficiencyField(std::string key, Efficiency ComparisonRow::*member) {
  return {std::move(key), efficiencySchema(), [member](const ComparisonRow& row) { return toJson(row.*member); }};
}

Field<ComparisonRow> speedupField() {
  static const FieldTable<ComparisonRow> table(
      {derived<ComparisonRow>(
           "median", [](const ComparisonRow& row) { return row.speedup.median; }, "Unfused / fused, per round."),
       derived<ComparisonRow>(
           "low", [](const ComparisonRow& row) { return row.speedup.low; }, "Lower bound of the 95 % interval."),
       derived<ComparisonRow>(
           "high", [](const ComparisonRow& row) { return row.speedup.high; }, "Upper bound of the 95 % interval."),
       derived<ComparisonRow>("isSignificant", &ComparisonRow::isClear,
                              "The interval excludes 1, and the plans differ here.")});
  return {"speedup", schema::orNull(table.schema()), [](const ComparisonRow& row) {
            return row.unfused.count > 0 && row.fused.count > 0 ? table.toJson(row) : Json();
          }};
}

}  // namespace

static const FieldTable<ComparisonRow>& fieldsOf(const ComparisonRow*) {
  using Row = ComparisonRow;
  static const FieldTable<Row> table(
      {field("label", &Row::label, "Name of the step."),
       field("phase", &Row::phase, "forward, backward, or empty for a sum."),
       field("depth", &Row::depth, "1: a basic op below a fused one."), field("owners", &Row::owners),
       field("isFused", &Row::isFused, "Whether the step is a fused op."),
       field("isView", &Row::isView, "Only a view: no kernel runs."),
       field("isInBoth", &Row::isInBoth, "The step is the same in both plans, so its ratio is noise."),
       field("note", &Row::note, "Remark of the kernel; usually empty."), statsField("unfused", &Row::unfused),
       statsField("fused", &Row::fused), efficiencyField("unfusedEfficiency", &Row::unfusedEfficiency),
       efficiencyField("fusedEfficiency", &Row::fusedEfficiency), speedupField(),
       field("bytesSaved", &Row::bytesSaved, "Minimum memory traffic."),
       field("launchesSaved", &Row::launchesSaved, "Number of device launches.")});
  return table;
}

static const FieldTable<Comparison>& fieldsOf(const Comparison*) {
  static const FieldTable<Comparison> table(
      {field("rows", &Comparison::rows), field("sum", &Comparison::sum), field("endToEnd", &Comparison::endToEnd)});
  return table;
}

}  // namespace fuseline

namespace fuseline::cli {

namespace {

class RunTable {
 public:
  RunTable(const RunRecord& record, bool hasColour)
      : m_record(record),
        m_comparison(compareVariants(record)),
        m_hasColour(hasColour),
        m_time(unitsOf(m_comparison).time),
        m_bytes(unitsOf(m_comparison).bytes) {}

  std::string text() const {
    return heading() + "\n" + timings() + efficiencies() + "\n" + memory() + kernels() + notes();
  }

 private:
  std::string heading() const {
    const RunSpec& settings = m_record.settings;
    return styled(m_record.pipelineName, Style::Bold, m_hasColour) +
           fmt::format("  on {}\npass {} · rules {} · recipe {} · seed {} · {} round{} after {} warm-up runs{}\n",
                       deviceText(), nameOf(settings.pass), nameOf(settings.rules), settings.recipe, settings.seed,
                       numRounds(), numRounds() == 1 ? "" : "s", m_record.warmups(), symbolText()) +
           (m_record.note.empty() ? "" : m_record.note + "\n") + headlineText();
  }

  std::string headlineText() const {
    const std::string result = headline(m_comparison.endToEnd);
    if (result.empty()) return {};
    const std::string caveat = headlineCaveat(m_comparison.endToEnd);
    return styled(wrappedLines(result, 0), Style::Bold, m_hasColour) + "\n" +
           (caveat.empty() ? "" : wrappedLines(caveat, 0) + "\n");
  }

  int numRounds() const { return std::max(m_comparison.endToEnd.unfused.count, m_comparison.endToEnd.fused.count); }

  std::string deviceText() const {
    const std::string name = m_record.fact("device");
    if (!name.empty()) return fmt::format("{} ({})", m_record.settings.device, name);
    return m_record.settings.device;
  }

  std::string symbolText() const {
    std::string text;
    for (const auto& [name, value] : m_record.settings.symbols) text += fmt::format(" · {}={}", name, value);
    return text;
  }

  std::string timings() const {
    Table table({{"", Align::Left},
                 {fmt::format("unfused {}", m_time.name)},
                 {"± %"},
                 {"n"},
                 {fmt::format("fused {}", m_time.name)},
                 {"± %"},
                 {"n"},
                 {"speed-up"},
                 {fmt::format("saved {}", m_bytes.name)},
                 {"launches"}});
    std::string phase;
    for (std::size_t i = 0; i < m_comparison.rows.size(); ++i) {
      const ComparisonRow& row = m_comparison.rows[i];
      if (row.phase != phase) table.addHeading(row.phase);
      phase = row.phase;
      table.addRow(cellsOf(row, labelOf(i)));
    }
    table.addRule();
    if (m_record.settings.timesSteps()) addStepSums(table);
    table.addRow(boldLabel(cellsOf(m_comparison.endToEnd, "end to end")));
    if (const ComparisonRow row = rowOf(&VariantRecord::launchNs); row.unfused.count + row.fused.count > 0)
      table.addRow(cellsOf(row, "the host launches"));
    table.dropEmptyColumns();
    return table.toString(m_hasColour);
  }

  void addStepSums(Table& table) const {
    table.addRow(cellsOf(m_comparison.sum, "sum of the steps"));
    if (isTraced()) table.addRow(cellsOf(rowOf(&VariantRecord::unattributedNs), "of no step"));
    addInstrumentedRow(table);
  }

  std::string labelOf(std::size_t index) const {
    const ComparisonRow& row = m_comparison.rows[index];
    if (row.depth == 0) return entryName(row) + (row.isFused ? "" : inParentheses(row.note));
    return fmt::format("  {} {}", isLastOfEntry(m_comparison, index) ? "└" : "├", row.label);
  }

  std::vector<Cell> cellsOf(const ComparisonRow& row, std::string label) const {
    std::vector<Cell> cells = {{std::move(label), row.depth == 0 ? Style::Plain : Style::Dim}};
    for (const SampleStats* stats : {&row.unfused, &row.fused}) appendStats(cells, *stats, row);
    const bool hasBoth = row.unfused.count > 0 && row.fused.count > 0 && !row.isView;
    cells.push_back(hasBoth && row.unfused.median > 0.0 ? ratioCell(row) : Cell());
    cells.push_back(
        row.bytesSaved != 0 ? Cell(fmt::format("{:.2f}", static_cast<double>(row.bytesSaved) / m_bytes.size)) : Cell());
    cells.push_back(row.launchesSaved != 0 ? Cell(fmt::format("{}", row.launchesSaved)) : Cell());
    return cells;
  }

  static Cell ratioCell(const ComparisonRow& row) {
    return row.isInBoth ? ratioOfSameStepCell(row.speedup) : speedupCell(row.speedup);
  }

  void appendStats(std::vector<Cell>& cells, const SampleStats& stats, const ComparisonRow& row) const {
    if (stats.count == 0 || row.isView) {
      cells.emplace_back(stats.count == 0 ? "" : "view", Style::Dim);
      cells.insert(cells.end(), 2, Cell());
      return;
    }
    const Style style = row.depth == 0 ? Style::Plain : Style::Dim;
    cells.emplace_back(fmt::format("{:.3f}", stats.median / m_time.size), style);
    cells.emplace_back(spreadText(stats), Style::Dim);
    cells.emplace_back(fmt::format("{}", stats.count), Style::Dim);
  }

  static std::vector<Cell> boldLabel(std::vector<Cell> cells) {
    cells.front().style = Style::Bold;
    return cells;
  }

  bool isTraced() const { return m_record.settings.isTraced(); }
  ComparisonRow rowOf(const SamplesOf& samplesOf) const { return compareSamples(m_record, "", samplesOf); }

  void addInstrumentedRow(Table& table) const {
    const ComparisonRow row = rowOf(&VariantRecord::instrumentedNs);
    table.addRow(cellsOf(row, isTraced() ? "with the trace on" : "with clocks inside"));
    table.addRow({isTraced() ? "cost of the trace" : "cost of the clocks",
                  overheadCell(row.unfused, m_comparison.endToEnd.unfused),
                  {},
                  {},
                  overheadCell(row.fused, m_comparison.endToEnd.fused)});
  }

  /// Marked where a trace costs more than it may.
  Cell overheadCell(const SampleStats& instrumented, const SampleStats& plain) const {
    if (plain.count == 0 || plain.median <= 0.0) return {};
    const bool isMarked = isTraced() && !isCheapTrace(instrumented.median, plain.median);
    return {fmt::format("{:+.1f} %{}", 100.0 * (instrumented.median / plain.median - 1.0), isMarked ? " !" : ""),
            Style::Dim};
  }

  // ---- what each step made of the device

  std::string efficiencies() const {
    const ColumnUnit rate = rateUnit();
    Table table(efficiencyColumns(rate));
    std::string phase;
    for (std::size_t i = 0; i < m_comparison.rows.size(); ++i) {
      const ComparisonRow& row = m_comparison.rows[i];
      if (!hasRates(row)) continue;
      if (row.phase != phase) table.addHeading(row.phase);
      phase = row.phase;
      table.addRow(efficiencyCells(row, labelOf(i), rate));
    }
    if (!hasRates(m_comparison.sum)) return "";
    table.addRule();
    table.addRow(efficiencyCells(m_comparison.sum, "sum of the steps", rate));
    table.dropEmptyColumns();
    return "\n" + (m_record.peaks ? peaksText(*m_record.peaks, m_record.deviceName()) + "\n" : "") +
           table.toString(m_hasColour);
  }

  /// Not of views, and of no step where steps were not timed.
  static bool hasRates(const ComparisonRow& row) {
    return row.unfusedEfficiency.timeNs + row.fusedEfficiency.timeNs > 0.0;
  }

  std::vector<Column> efficiencyColumns(const ColumnUnit& rate) const {
    std::vector<Column> columns = {{"", Align::Left}};
    for (const auto& [variant, efficiencyOf] : sides())
      for (std::string header :
           {variant + " GB/s", std::string(rate.name), std::string("x limit"), std::string("bound")})
        columns.push_back({std::move(header)});
    return columns;
  }

  using EfficiencyOf = Efficiency ComparisonRow::*;

  std::vector<std::pair<std::string, EfficiencyOf>> sides() const {
    std::vector<std::pair<std::string, EfficiencyOf>> sides = {{"unfused", &ComparisonRow::unfusedEfficiency},
                                                               {"fused", &ComparisonRow::fusedEfficiency}};
    std::erase_if(sides, [&](const auto& side) { return !m_record.variant(side.first); });
    return sides;
  }

  ColumnUnit rateUnit() const {
    double largest = 0.0;
    for (const ComparisonRow& row : m_comparison.rows)
      for (const auto& [variant, efficiencyOf] : sides()) largest = std::max(largest, (row.*efficiencyOf).gflops());
    return rateUnitFor(largest);
  }

  std::vector<Cell> efficiencyCells(const ComparisonRow& row, std::string label, const ColumnUnit& rate) const {
    const Style style = row.depth == 0 ? Style::Plain : Style::Dim;
    std::vector<Cell> cells = {{std::move(label), style}};
    for (const auto& [variant, efficiencyOf] : sides()) {
      const Efficiency& efficiency = row.*efficiencyOf;
      cells.emplace_back(threeDigits(efficiency.gbps()), style);
      cells.emplace_back(threeDigits(efficiency.gflops() / rate.size), style);
      cells.emplace_back(threeDigits(efficiency.timesFromRoofline()), style);
      cells.emplace_back(efficiency.boundName(), Style::Dim);
    }
    return cells;
  }

  std::string memory() const {
    Table table({{"", Align::Left}, {"unfused"}, {"fused"}, {"saved"}});
    const ColumnUnit unit = memoryUnit();
    addMemoryRow(table, "peak memory", &VariantRecord::peakBytes, unit);
    addMemoryRow(table, "  shared by lifetime", &VariantRecord::arenaBytes, unit);
    addMemoryRow(table, "saved for backward", &VariantRecord::savedForBackwardBytes, unit);
    if (std::ranges::any_of(m_record.variants, [](const VariantRecord& variant) { return variant.hostBytes > 0; }))
      addMemoryRow(table, "offloaded to host memory", &VariantRecord::hostBytes, unit);
    addLaunchRows(table);
    return table.toString(m_hasColour);
  }

  /// One for all rows.
  ColumnUnit memoryUnit() const {
    double largest = 0.0;
    for (const VariantRecord& variant : m_record.variants)
      largest = std::max(largest, static_cast<double>(std::max(variant.peakBytes, variant.hostBytes)));
    return byteUnitFor(largest);
  }

  void addMemoryRow(Table& table, const char* label, std::int64_t VariantRecord::*field, const ColumnUnit& unit) const {
    const VariantRecord* unfused = m_record.variant("unfused");
    const VariantRecord* fused = m_record.variant("fused");
    const auto text = [&](std::int64_t bytes) {
      return bytes == 0 ? "0" : threeDigits(static_cast<double>(bytes) / unit.size);
    };
    table.addRow({fmt::format("{}, {}", label, unit.name), unfused ? text(unfused->*field) : "",
                  fused ? text(fused->*field) : "", unfused && fused ? text(unfused->*field - fused->*field) : ""});
  }

  /// A call of a library is one launch, and may be several kernels, which only a trace sees.
  void addLaunchRows(Table& table) const {
    addCountRow(table, "steps", &VariantRecord::numSteps);
    addCountRow(table, "launches", [](const VariantRecord& variant) { return variant.launches; });
    if (isTraced()) addCountRow(table, "  kernels, copies and fills", &VariantRecord::numTraced);
  }

  void addCountRow(Table& table, const char* label,
                   const std::function<std::int64_t(const VariantRecord&)>& countOf) const {
    const VariantRecord* unfused = m_record.variant("unfused");
    const VariantRecord* fused = m_record.variant("fused");
    const auto text = [&](const VariantRecord* variant) { return variant ? fmt::format("{}", countOf(*variant)) : ""; };
    table.addRow({label, text(unfused), text(fused),
                  unfused && fused ? fmt::format("{}", countOf(*unfused) - countOf(*fused)) : ""});
  }

  /// Each kernel by itself, where the device was traced.
  std::string kernels() const {
    std::string text;
    if (!isTraced()) return text;
    for (const VariantRecord& variant : m_record.variants) text += "\n" + kernelsOf(variant);
    return text;
  }

  std::string kernelsOf(const VariantRecord& variant) const {
    const ColumnUnit unit = timeUnitFor(longestKernelNs(variant));
    Table table({{variant.name + " " + unit.name}, {"± %"}, {"kernels", Align::Left}});
    for (const StepRecord& step : variant.steps) {
      if (step.activities.empty()) continue;
      table.addHeading(fmt::format("{} ({})", step.name, step.phase));
      addKernels(table, step.activities, unit);
    }
    if (!variant.unattributed.empty()) table.addHeading("of no step");
    addKernels(table, variant.unattributed, unit);
    return table.toString(m_hasColour);
  }

  static double longestKernelNs(const VariantRecord& variant) {
    double longest = 0.0;
    for (const StepRecord& step : variant.steps)
      for (const ActivityRecord& kernel : step.activities)
        longest = std::max(longest, summarize(kernel.samplesNs).median);
    return longest;
  }

  static void addKernels(Table& table, const std::vector<ActivityRecord>& kernels, const ColumnUnit& unit) {
    for (const ActivityRecord& kernel : kernels) {
      const SampleStats stats = summarize(kernel.samplesNs);
      table.addRow({fmt::format("{:.3f}", stats.median / unit.size),
                    {spreadText(stats), Style::Dim},
                    fmt::format("{} ({})", kernel.name, kernel.configuration)});
    }
  }

  std::string notes() const {
    std::string text =
        "\nMedians; ± is half the interquartile range. ~ marks a speed-up that is not significant (the 95 % interval "
        "of the\nper-round ratios includes 1), ( ) a step that is the same in both plans, so its ratio is "
        "noise.\n"
        "Bytes are minimum traffic.\n";
    if (!m_record.expertLoads.empty())
      text += wrappedLines("Expert load: " + expertLoadsText(m_record.expertLoads), 2) + ".\n";
    text += peaksNotes() + launchingText() + launchWaitsText() + waysText();
    text += methodText();
    for (const std::string& sentence : {cachesText(m_record), firstRunText(m_record)})
      if (!sentence.empty()) text += wrappedLines(sentence, 2) + "\n";
    if (!m_record.timingNote.empty()) text += "They were not traced: " + m_record.timingNote + "\n";
    for (const std::string& doubt : doubtsOf(m_record)) text += wrappedLines("Doubtful: " + doubt, 2) + "\n";
    if (m_record.isPartial) text += "Partial: the run was cancelled. Only complete rounds are shown.\n";
    return styled(text, Style::Dim, m_hasColour);
  }

  /// How steps were timed; empty: in a way that this program does not know.
  std::string methodText() const {
    const StepTiming timing = m_record.settings.timing;
    if (timing == StepTiming::Cupti)
      return "Steps were timed by CUPTI, kernel by kernel; a step is the time in which its kernels ran. ! marks a "
             "trace that costs\nmore than 2 %. End-to-end times exclude tracing; --timing none does not even load "
             "CUPTI.\n";
    if (timing == StepTiming::Events)
      return "Steps were launched one by one and timed by device events between them; a step lasts until the next "
             "could begin.\n";
    if (timing == StepTiming::Host)
      return "Steps were timed by the host clock, with a device synchronization after each.\n";
    return timing == StepTiming::None ? "Steps were not timed.\n" : "";
  }

  std::string peaksNotes() const {
    if (m_record.peaks)
      return "x limit: time / roofline limit (from the measured peaks); below 1 if data come from caches.\nbound: "
             "resource that sets the roofline limit.\n";
    return m_record.peaksNote.empty() ? "" : wrappedLines("No measured peaks. " + m_record.peaksNote, 2) + "\n";
  }

  /// Nothing where there is no choice.
  std::string launchingText() const {
    std::string text;
    for (const VariantRecord& variant : m_record.variants)
      if (!variant.launching.empty()) text += fmt::format("Launches of {}: {}.\n", variant.name, variant.launching);
    return text;
  }

  /// Launch waits of the instrumented round with the median total.
  std::string launchWaitsText() const {
    std::string text;
    for (const VariantRecord& variant : m_record.variants)
      if (const std::string waits = launchWaitText(variant); !waits.empty()) text += wrappedLines(waits, 2) + "\n";
    return text;
  }

  /// How products were made where there was a choice: of a step once, whichever plan it is in.
  std::string waysText() const {
    std::vector<std::string> lines;
    for (const VariantRecord& variant : m_record.variants)
      for (const StepRecord& step : variant.steps)
        for (const std::string& way : step.ways) {
          std::string line = fmt::format("{} ({}): {}.\n", step.name, step.phase, way);
          if (std::ranges::count(lines, line) == 0) lines.push_back(std::move(line));
        }
    return fmt::format("{}", fmt::join(lines, ""));
  }

  const RunRecord& m_record;
  Comparison m_comparison;
  bool m_hasColour;
  ColumnUnit m_time;
  ColumnUnit m_bytes;
};

}  // namespace

std::string runTable(const RunRecord& record, bool hasColour) { return RunTable(record, hasColour).text(); }

Json comparisonSchema() { return fieldSchema<Comparison>(); }

Json toJson(const Comparison& comparison) { return fieldJson(comparison); }

}  // namespace fuseline::cli
