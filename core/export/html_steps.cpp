// Draws plans and writes tables of steps.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/html_steps.h"

#include "core/support/text.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// An entry with the basic ops beneath it.
struct Entry {
  std::size_t row = 0;
  std::size_t end = 0;
};

std::vector<Entry> entriesOf(const Comparison& comparison) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    if (comparison.rows[i].depth == 0) entries.push_back({.row = i});
    if (!entries.empty()) entries.back().end = i + 1;
  }
  return entries;
}

bool isCompared(const Comparison& comparison) {
  return std::ranges::any_of(comparison.rows, [](const ComparisonRow& row) { return row.fused.count > 0; }) &&
         std::ranges::any_of(comparison.rows, [](const ComparisonRow& row) { return row.unfused.count > 0; });
}

/// Rows that only the unfused plan has, although both were measured.
bool isLeftOut(const Comparison& comparison, const ComparisonRow& row) {
  return row.depth == 0 && row.fused.count == 0 && row.unfused.count > 0 && isCompared(comparison);
}

/// "good" and "bad" only where a difference is no chance.
std::string ratioClass(const ComparisonRow& row) {
  if (!row.isClear()) return "dim";
  return row.speedup.median > 1.0 ? "good" : "bad";
}

class PlanDrawing {
 public:
  explicit PlanDrawing(const Comparison& comparison)
      : m_comparison(comparison), m_time(unitsOf(comparison).time), m_entries(entriesOf(comparison)) {}

  Html markup() const {
    Html markup;
    for (std::size_t first = 0; first < m_entries.size();) {
      const std::string& phase = rowOf(m_entries[first]).phase;
      Html boxes;
      std::size_t next = first;
      for (; next < m_entries.size() && rowOf(m_entries[next]).phase == phase; ++next) boxes += box(m_entries[next]);
      markup += textElement("h3", phase) + element("ol", {{"class", "plan"}}, boxes);
      first = next;
    }
    return markup;
  }

 private:
  const ComparisonRow& rowOf(const Entry& entry) const { return m_comparison.rows[entry.row]; }

  Html box(const Entry& entry) const {
    const ComparisonRow& row = rowOf(entry);
    const bool leftOut = isLeftOut(m_comparison, row);
    const std::string look = row.isFused ? "fused" : leftOut ? "left-out" : row.isView ? "view" : "basic";
    Html content = textElement("b", entryName(row));
    if (row.isFused) content += parts(entry);
    return element("li", {{"class", look}}, content + element("span", {{"class", "times"}}, times(row, leftOut)));
  }

  Html parts(const Entry& entry) const {
    Html ops;
    for (std::size_t i = entry.row + 1; i < entry.end; ++i) ops += textElement("i", m_comparison.rows[i].label);
    return element("span", {{"class", "ops"}}, ops);
  }

  Html times(const ComparisonRow& row, bool leftOut) const {
    if (row.isView) return "a view: nothing runs"_html;
    if (leftOut) return Html::text(fmt::format("only unfused, {}", timeOf(row.unfused)));
    if (row.unfused.count == 0 || row.fused.count == 0)
      return Html::text(timeOf(row.fused.count > 0 ? row.fused : row.unfused));
    const Html ratio = element("span", {{"class", ratioClass(row)}}, Html::text(ratioText(row)));
    if (row.isInBoth) return Html::text(timeOf(row.fused));
    return Html::text(fmt::format("{} → {}, ", m_time.timeOf(row.unfused), timeOf(row.fused))) + ratio;
  }

  std::string timeOf(const SampleStats& stats) const {
    return stats.count > 0 ? fmt::format("{} {}", m_time.timeOf(stats), m_time.name) : "not timed";
  }

  const Comparison& m_comparison;
  ColumnUnit m_time;
  std::vector<Entry> m_entries;
};

class StepTable {
 public:
  StepTable(const RunRecord& record, const Comparison& comparison, const OpsOfRows& ops)
      : m_record(record), m_comparison(comparison), m_ops(ops), m_units(unitsOf(comparison)) {
    for (const ComparisonRow& row : comparison.rows)
      m_longestNs = std::max({m_longestNs, row.unfused.median, row.fused.median});
  }

  Html markup() const {
    Html table = element("thead", head());
    for (const Entry& entry : entriesOf(m_comparison)) table += group(entry);
    Html totals;
    if (m_record.settings.timesSteps()) totals += total(m_comparison.sum, "sum of the steps");
    totals += total(m_comparison.endToEnd, "end to end");
    return element("table", {{"id", "steps"}}, table + element("tfoot", totals));
  }

 private:
  Html head() const {
    const auto column = [](const std::string& title, const char* kind) {
      return element("th", {{"scope", "col"}, {"data-sort", kind}}, Html::text(title));
    };
    return element("tr", column("step", "text") + column("pass", "text") +
                             column(fmt::format("unfused {}", m_units.time.name), "number") + column("± %", "number") +
                             column(fmt::format("fused {}", m_units.time.name), "number") + column("± %", "number") +
                             "<th scope=\"col\">unfused above fused</th>"_html + column("speed-up", "number") +
                             column(fmt::format("saved {}", m_units.bytes.name), "number") +
                             column("launches saved", "number"));
  }

  /// Sorting moves whole entries.
  Html group(const Entry& entry) const {
    Html rows;
    for (std::size_t i = entry.row; i < entry.end; ++i) {
      const ComparisonRow& row = m_comparison.rows[i];
      const char* look = row.depth > 0 ? "part" : row.isFused ? "fused" : "basic";
      HtmlAttributes attributes = {{"class", look}};
      if (!opsOf(i).empty()) attributes.emplace_back("data-ops", anchorsOf(i));
      rows += element("tr", attributes, nameCell(i) + textElement("td", row.phase) + figures(row, bars(row)));
    }
    return element("tbody", rows);
  }

  std::span<const DrawnOpName> opsOf(std::size_t row) const {
    return row < m_ops.size() ? std::span<const DrawnOpName>(m_ops[row]) : std::span<const DrawnOpName>();
  }

  std::string anchorsOf(std::size_t row) const {
    std::vector<std::string> anchors;
    for (const DrawnOpName& op : opsOf(row)) anchors.push_back(op.anchor);
    return fmt::format("{}", fmt::join(anchors, " "));
  }

  Html total(const ComparisonRow& row, const char* name) const {
    return element("tr", textElement("th", name) + "<td></td>"_html + figures(row, {}));
  }

  Html nameCell(std::size_t index) const {
    const ComparisonRow& row = m_comparison.rows[index];
    Html name = Html::text(row.depth > 0 ? row.label : entryName(row));
    if (row.isFused && row.depth == 0) name += " <small>fused</small>"_html;
    if (const std::string note = m_record.noteOf(row.label, row.phase); !note.empty())
      name += element("div", {{"class", "noted"}}, Html::text(note));
    if (const StepRecord* step = stepOf(m_record, row)) name += details(*step, row, opsOf(index));
    HtmlAttributes attributes = {{"class", "name"}, {"tabindex", "0"}, {"data-v", entryName(row)}};
    if (!opsOf(index).empty()) attributes.emplace_back("id", rowAnchor(index));
    return element("td", attributes, name);
  }

  static Html details(const StepRecord& step, const ComparisonRow& row, std::span<const DrawnOpName> drawn) {
    const auto line = [](std::string_view name, const std::string& value) {
      return value.empty() ? Html() : textElement("dt", name) + textElement("dd", value);
    };
    const Html ops = drawn.empty() ? line("ops", fmt::format("{}", fmt::join(step.ops, ", "))) : linksTo(drawn);
    const double timeNs = row.fused.count > 0 ? row.fused.median : row.unfused.median;
    Html list = line("step", step.name) + line("rule", step.rule) + line("kernel", step.kernel) + ops +
                line("writes", step.writes) +
                line("bytes, counted", formatBytes(step.bytes) + rateText(step.bytes, timeNs, "GB/s")) +
                line("operations, counted",
                     formatFlops(static_cast<double>(step.flops)) + rateText(step.flops, timeNs, "GFLOP/s")) +
                line("merged steps", fmt::format("{}", fmt::join(step.absorbs, ", "))) +
                line("algorithms", fmt::format("{}", fmt::join(step.ways, "; "))) + line("note", step.note);
    for (const ActivityRecord& kernel : step.activities)
      list += line(formatDuration(summarize(kernel.samplesNs).median),
                   fmt::format("{} ({})", kernel.name, kernel.configuration));
    return element("dl", {{"class", "details"}}, list);
  }

  /// To the boxes of the graph.
  static Html linksTo(std::span<const DrawnOpName> ops) {
    Html links;
    for (const DrawnOpName& op : ops)
      links += (links.isEmpty() ? Html() : ", "_html) + element("a", {{"href", "#" + op.anchor}}, Html::text(op.name));
    return "<dt>ops</dt>"_html + element("dd", links);
  }

  /// An amount a nanosecond is a billion a second.
  static std::string rateText(std::int64_t amount, double timeNs, const char* unit) {
    if (amount == 0 || timeNs <= 0.0) return {};
    return fmt::format(": {:.3g} {}", static_cast<double>(amount) / timeNs, unit);
  }

  Html figures(const ComparisonRow& row, const Html& bars) const {
    Html cells;
    for (const SampleStats* stats : {&row.unfused, &row.fused}) {
      const bool isMeasured = stats->count > 0 && !row.isView;
      const char* other = row.isView && stats->count > 0 ? "view" : "";
      cells += number(isMeasured ? m_units.time.timeOf(*stats) : other, isMeasured, stats->median);
      cells += number(isMeasured ? spreadText(*stats) : "", isMeasured && stats->hasSpread(), stats->spreadPercent());
    }
    return cells + element("td", {{"class", "bars"}}, bars) + ratio(row) +
           number(row.bytesSaved != 0 ? m_units.bytes.bytesOf(row.bytesSaved) : "", row.bytesSaved != 0,
                  static_cast<double>(row.bytesSaved)) +
           number(row.launchesSaved != 0 ? fmt::format("{}", row.launchesSaved) : "", row.launchesSaved != 0,
                  static_cast<double>(row.launchesSaved));
  }

  static Html number(const std::string& shown, bool hasValue, double value) {
    HtmlAttributes attributes = {{"class", "number"}};
    if (hasValue) attributes.emplace_back("data-v", fmt::format("{}", value));
    return element("td", attributes, Html::text(shown));
  }

  static Html ratio(const ComparisonRow& row) {
    const std::string text = ratioText(row);
    HtmlAttributes attributes = {{"class", "number " + ratioClass(row)}};
    if (!text.empty()) {
      attributes.emplace_back("data-v", fmt::format("{}", row.speedup.median));
      attributes.emplace_back("title",
                              fmt::format("95 % interval: {:.3f}x to {:.3f}x", row.speedup.low, row.speedup.high));
    }
    return element("td", attributes, Html::text(text));
  }

  /// Lengths share one scale in the whole table.
  Html bars(const ComparisonRow& row) const {
    return row.isView ? Html() : bar(row.unfused, "unfused") + bar(row.fused, "fused");
  }

  Html bar(const SampleStats& stats, const char* look) const {
    if (stats.count == 0 || m_longestNs <= 0.0) return {};
    const std::string width = fmt::format("width:{:.2f}%", 100.0 * stats.median / m_longestNs);
    return element("span", {{"class", look}, {"style", width}});
  }

  const RunRecord& m_record;
  const Comparison& m_comparison;
  const OpsOfRows& m_ops;
  ComparisonUnits m_units;
  double m_longestNs = 0.0;
};

}  // namespace

Html planDrawing(const Comparison& comparison) { return PlanDrawing(comparison).markup(); }

Html stepTable(const RunRecord& record, const Comparison& comparison, const OpsOfRows& ops) {
  return StepTable(record, comparison, ops).markup();
}

const StepRecord* stepOf(const RunRecord& record, const ComparisonRow& row) {
  const VariantRecord* unfused = record.variant("unfused");
  const VariantRecord* fused = record.variant("fused");
  const StepRecord* step = fused && row.depth == 0 ? fused->find(row.label, row.phase) : nullptr;
  return step || !unfused ? step : unfused->find(row.label, row.phase);
}

std::string rowAnchor(std::size_t row) { return fmt::format("step-{}", row); }

}  // namespace fuseline
