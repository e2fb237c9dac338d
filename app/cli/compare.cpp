// fuseline compare: two runs side by side, and gates for continuous integration.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/annotations.h"
#include "app/cli/comparison_table.h"
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/export/html_report.h"
#include "core/profile/run_comparison.h"
#include "core/profile/run_folder.h"
#include "core/support/atomic_file.h"
#include "core/support/field_table.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {
namespace compare_parts {

struct CompareOptions {
  std::string base;
  std::string next;
  std::vector<std::string> others;
  std::vector<std::string> gates;
  std::string report;
  bool replaces = false;
  bool asJson = false;
  bool annotates = false;
};

/// A run that the new one is set beside.
struct Base {
  std::string file;
  RunRecord record;
  RunComparison comparison;
};

Result<Base> baseOf(const std::string& file, const RunRecord& next) {
  Result<RunRecord> record = loadNotedRun(file);
  if (!record) return record.error();
  Result<RunComparison> comparison = compareRuns(*record, next);
  if (!comparison) return comparison.error();
  return Base{.file = file, .record = std::move(*record), .comparison = std::move(*comparison)};
}

/// The first one is what gates are about.
Result<std::vector<Base>> basesOf(const CompareOptions& options, const RunRecord& next) {
  std::vector<std::string> files = {options.base};
  files.insert(files.end(), options.others.begin(), options.others.end());
  std::vector<Base> bases;
  for (const std::string& file : files) {
    Result<Base> base = baseOf(file, next);
    if (!base) return base.error();
    bases.push_back(std::move(*base));
  }
  return bases;
}

Json notesJson(const RunRecord& record) {
  return {{"note", record.note},
          {"stepNotes", fieldJson(record.rowNotes)},
          {"timeRangeNotes", fieldJson(record.stretchNotes)}};
}

Json toJson(const std::vector<Base>& bases, const RunRecord& next, const std::vector<GateReport>& gates) {
  Json json = comparisonJson(bases.front().comparison);
  Json others = Json::array();
  for (const Base& base : std::span(bases).subspan(1)) {
    Json other = comparisonJson(base.comparison);
    other["file"] = base.file;
    other["notes"] = notesJson(base.record);
    others.push_back(std::move(other));
  }
  json["others"] = std::move(others);
  json["notes"] = {{"base", notesJson(bases.front().record)}, {"new", notesJson(next)}};
  json["gates"] = toJson(gates);
  return json;
}

char letterOf(std::size_t base) { return static_cast<char>('A' + base); }

/// The new run, and what it is against each base. Rows of one base only are blank for the others.
class SeveralTable {
 public:
  explicit SeveralTable(const std::vector<Base>& bases)
      : m_bases(bases), m_time(timeUnitOf(bases.front().comparison)), m_table(columns(bases.size())) {}

  std::string text(bool hasColour) {
    addAll("end to end", &RunComparison::totals);
    addAll("steps", &RunComparison::steps);
    return m_table.toString(hasColour);
  }

 private:
  using Metrics = std::vector<MetricChange> RunComparison::*;

  static std::vector<Column> columns(std::size_t numBases) {
    std::vector<Column> columns = {{"", Align::Left}, {"pass", Align::Left}, {"new"}, {"± %"}};
    for (std::size_t base = 0; base < numBases; ++base) {
      columns.push_back({std::string(1, letterOf(base))});
      columns.push_back({"change"});
    }
    return columns;
  }

  static const MetricChange* find(const std::vector<MetricChange>& metrics, const MetricChange& like) {
    const auto isLike = [&](const MetricChange& each) { return each.name == like.name && each.phase == like.phase; };
    const auto found = std::ranges::find_if(metrics, isLike);
    return found == metrics.end() ? nullptr : &*found;
  }

  /// Each once, in the order of the first base that has it.
  void addAll(const char* heading, Metrics metrics) {
    m_table.addHeading(heading);
    std::vector<MetricChange> shown;
    for (const Base& base : m_bases)
      for (const MetricChange& metric : base.comparison.*metrics)
        if (!find(shown, metric)) add(shown.emplace_back(metric), metrics);
  }

  void add(const MetricChange& metric, Metrics metrics) {
    std::vector<Cell> cells = {labelOf(metric), metric.phase, valueCell(metric, metric.next, m_time),
                               spreadCell(metric.next)};
    for (const Base& base : m_bases) {
      const MetricChange* own = find(base.comparison.*metrics, metric);
      cells.push_back(own ? valueCell(*own, own->base, m_time) : Cell());
      cells.push_back(own ? changeCell(*own) : Cell());
    }
    m_table.addRow(std::move(cells));
  }

  const std::vector<Base>& m_bases;
  ColumnUnit m_time;
  Table m_table;
};

std::string differencesText(const RunComparison& comparison, const std::string& indent) {
  std::string text;
  for (const RunComparison::Difference& difference : comparison.differences)
    text += fmt::format(
        "{}{}\n", indent,
        visibleText(fmt::format("{}: {} -> {}", difference.what, difference.base.empty() ? "-" : difference.base,
                                difference.next.empty() ? "-" : difference.next)));
  return text;
}

/// "A: old.fuserun, before the change".
std::string basesText(const std::vector<Base>& bases) {
  std::string text;
  for (std::size_t base = 0; base < bases.size(); ++base) {
    const std::string& note = bases[base].record.note;
    text += fmt::format("{}: {}{}{}\n", letterOf(base), bases[base].file, note.empty() ? "" : ", ", visibleText(note));
    text += differencesText(bases[base].comparison, "   ");
  }
  return text;
}

/// The user's notes on one of the runs.
std::string notesText(const std::string& file, const RunRecord& record) {
  if (record.note.empty() && record.rowNotes.empty() && record.stretchNotes.empty()) return {};
  std::string text = fmt::format("\nnotes of {}\n", file);
  std::vector<std::string> lines;
  if (!record.note.empty()) lines.push_back(record.note);
  for (const RowNote& note : record.rowNotes)
    lines.push_back(fmt::format("{} ({}): {}", note.step, note.phase, note.text));
  for (const StretchNote& note : record.stretchNotes) lines.push_back(stretchNoteLine(note));
  for (const std::string& line : lines) text += fmt::format("  {}\n", visibleText(line));
  return text;
}

std::string tableText(const std::vector<Base>& bases, bool hasColour) {
  if (bases.size() > 1) return basesText(bases) + "\n" + SeveralTable(bases).text(hasColour);
  const std::string differences = differencesText(bases.front().comparison, "");
  return differences + (differences.empty() ? "" : "\n") + comparisonTable(bases.front().comparison, hasColour);
}

/// Warning about a base that was measured separately, if there is one.
std::string legendOf(const std::vector<Base>& bases) {
  const auto isPaired = [](const Base& base) { return base.comparison.isPaired; };
  const auto apart = std::ranges::find_if_not(bases, isPaired);
  return comparisonLegend(apart == bases.end() ? bases.front().comparison : apart->comparison);
}

std::string textOf(const std::vector<Base>& bases, const RunRecord& next, const std::string& nextFile, bool hasColour) {
  std::string text = tableText(bases, hasColour) + "\n" + wrappedLines(legendOf(bases), 0);
  for (std::size_t base = 0; base < bases.size(); ++base)
    text += newAndGoneText(bases[base].comparison, bases.size() > 1 ? fmt::format("Against {}: ", letterOf(base)) : "");
  for (const Base& base : bases) text += notesText(base.file, base.record);
  return text + notesText(nextFile, next);
}

/// Nothing for an empty path.
Result<void> writeReport(const std::vector<Base>& bases, const RunRecord& next, const std::string& path,
                         const LayOutGraph& layOut) {
  if (path.empty()) return {};
  std::vector<NamedRun> runs;
  for (const Base& base : bases) runs.push_back({std::filesystem::path(base.file).filename().string(), base.record});
  return writeFileAtomically(path, [&](std::ostream& file) { file << htmlReportBeside(next, runs, layOut); });
}

/// Lines for the failed gates.
std::string annotationsOf(const std::vector<GateReport>& gates, const std::string& file) {
  std::string text;
  for (const GateReport& gate : gates)
    if (!gate.isMet)
      text += githubAnnotation({.file = file, .message = fmt::format("{}: {}.", gate.gate, gate.sentence)});
  return text;
}

Result<void> checkFiles(const CompareOptions& options) {
  VerbFiles files{.read = {{"BASE", options.base}, {"NEW", options.next}}, .written = {{"--report", options.report}}};
  for (const std::string& file : options.others) files.read.emplace_back("--with", file);
  return checkOutputs(files, options.replaces);
}

Result<int> compare(const CompareOptions& options, Context& context) {
  const Result<std::vector<Gate>> gates = parseGates(options.gates);
  if (!gates) return gates.error();
  if (const Result<void> files = checkFiles(options); !files) return files.error();
  const Result<RunRecord> next = loadNotedRun(options.next);
  if (!next) return next.error();
  const Result<std::vector<Base>> bases = basesOf(options, *next);
  if (!bases) return bases.error();
  const Result<std::vector<GateReport>> reports = checkGates(*gates, bases->front().comparison);
  if (!reports) return reports.error();
  if (Result<void> written = writeReport(*bases, *next, options.report, context.layOut); !written)
    return written.error();
  if (options.asJson)
    printJson(context, toJson(*bases, *next, *reports));
  else
    context.out << textOf(*bases, *next, options.next, context.hasColour) << toString(*reports);
  if (options.annotates) context.commands << annotationsOf(*reports, options.next);
  return exitCodeOf(*reports);
}

Json compareSchema() {
  const Json notes = schema::object({{"note", schema::text("Note on the run; empty: none.")},
                                     {"stepNotes", fieldSchema<std::vector<RowNote>>()},
                                     {"timeRangeNotes", fieldSchema<std::vector<StretchNote>>()}});
  schema::Fields other = comparisonFields();
  other.insert(other.end(), {{"file", schema::text("Run file, as given to --with.")}, {"notes", notes}});
  schema::Fields all = comparisonFields();
  all.insert(all.end(), {{"others", schema::list(schema::object(other))},
                         {"notes", schema::object({{"base", notes}, {"new", notes}})},
                         {"gates", gatesSchema()}});
  return schema::object(all);
}

}  // namespace compare_parts
}  // namespace

void addCompareVerb(CLI::App& app, Context& context) {
  using namespace compare_parts;
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* verb = addVerb(app, context, "compare",
                           "Compare two runs step by step; with --fail-if, exit with code 5 if a threshold is crossed.",
                           options, compare, compareSchema);
  verb->add_option("BASE", options->base, "Run to compare with")->type_name("BASE.fuserun")->required();
  verb->add_option("NEW", options->next, "New run")->type_name("NEW.fuserun")->required();
  verb->add_option("--with", options->others,
                   "Another baseline besides BASE; repeatable. --fail-if checks only against BASE")
      ->type_name("BASE.fuserun")
      ->allow_extra_args(false);
  verb->add_option(
          "--fail-if", options->gates,
          "Exit with code 5 if a condition holds, such as \"median>+5%\" or \"speedup<-5%\". Metrics: median (of the "
          "fused plan), unfused (median of the unfused plan), speedup, peak (memory), saved (bytes kept for backward), "
          "launches, step (time of any step). Changes that are not statistically significant never fail")
      ->type_name("GATE")
      ->allow_extra_args(false);
  verb->add_option("--report", options->report, "Also write NEW as an HTML page that includes the comparison")
      ->type_name("OUT.html");
  verb->add_flag("--force", options->replaces, "Overwrite an existing page");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
  addAnnotateOption(*verb, options->annotates);
}

}  // namespace fuseline::cli
