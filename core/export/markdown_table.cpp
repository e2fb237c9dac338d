// Writes the comparison of a run as Markdown. Text from the run is in code spans, so none of it is markup.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/markdown_table.h"

#include "core/export/run_texts.h"
#include "core/profile/comparison_text.h"
#include "core/profile/doubts.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// The longest run of backticks.
std::size_t longestTicks(std::string_view text) {
  std::size_t longest = 0;
  std::size_t length = 0;
  for (const char c : text) {
    length = c == '`' ? length + 1 : 0;
    longest = std::max(longest, length);
  }
  return longest;
}

/// A bar would end a cell, also within code; elsewhere its backslash would be shown.
std::string row(std::vector<std::string> cells) {
  for (std::string& cell : cells)
    for (std::size_t at = cell.find('|'); at != std::string::npos; at = cell.find('|', at + 2))
      cell.insert(at, 1, '\\');
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

class MarkdownTable {
 public:
  explicit MarkdownTable(const RunRecord& record)
      : m_record(record), m_comparison(compareVariants(record)), m_units(unitsOf(m_comparison)) {}

  std::string text() const {
    return "### " + heading() + "\n\n" + settings() + said() + doubts() + "\n" + times() + "\n" + figures() + "\n" +
           details();
  }

 private:
  std::string heading() const {
    return fmt::format("{}: {}", markdownCode(m_record.title()), headlineOf(m_comparison));
  }

  std::string settings() const {
    std::vector<std::string> texts;
    for (const auto& [name, value] : settingsOf(m_record))
      texts.push_back(fmt::format("{} {}", name, markdownCode(value)));
    return fmt::format("{}\n", fmt::join(texts, " · "));
  }

  /// The user's notes about the run, its steps and its timeline.
  std::string said() const {
    std::string text = m_record.note.empty() ? "" : fmt::format("\n{}\n", markdownCode(m_record.note));
    if (!m_record.rowNotes.empty() || !m_record.stretchNotes.empty()) text += "\n";
    for (const RowNote& note : m_record.rowNotes)
      text +=
          fmt::format("- {} ({}): {}\n", markdownCode(note.step), markdownCode(note.phase), markdownCode(note.text));
    for (const StretchNote& note : m_record.stretchNotes)
      text += fmt::format("- {}\n", markdownCode(stretchNoteLine(note)));
    return text;
  }

  std::string doubts() const {
    std::string text;
    for (const std::string& doubt : doubtsOf(m_record))
      text += fmt::format("\n**Doubtful.** {}\n", markdownCode(doubt));
    return text;
  }

  std::string times() const {
    std::string text =
        row({"step", fmt::format("unfused {}", m_units.time.name), "± %", fmt::format("fused {}", m_units.time.name),
             "± %", "speed-up", fmt::format("saved {}", m_units.bytes.name), "launches saved"});
    text += "| :-- | --: | --: | --: | --: | --: | --: | --: |\n";
    std::string phase;
    for (std::size_t i = 0; i < m_comparison.rows.size(); ++i) {
      const ComparisonRow& entry = m_comparison.rows[i];
      if (entry.phase != phase)
        text += row({fmt::format("**{}**", markdownCode(entry.phase)), "", "", "", "", "", "", ""});
      phase = entry.phase;
      text += row(cellsOf(entry, nameOf(i)));
    }
    if (m_record.settings.timesSteps()) text += row(cellsOf(m_comparison.sum, "sum of the steps"));
    return text + row(cellsOf(m_comparison.endToEnd, "**end to end**"));
  }

  std::string nameOf(std::size_t index) const {
    const ComparisonRow& entry = m_comparison.rows[index];
    if (entry.depth > 0)
      return fmt::format("{} {}", isLastOfEntry(m_comparison, index) ? "└" : "├", markdownCode(entry.label));
    const std::string name = markdownCode(entryName(entry));
    if (entry.isFused) return fmt::format("**{}**", name);
    return entry.note.empty() ? name : fmt::format("{} ({})", name, markdownCode(entry.note));
  }

  std::vector<std::string> cellsOf(const ComparisonRow& entry, std::string name) const {
    std::vector<std::string> cells = {std::move(name)};
    for (const SampleStats* stats : {&entry.unfused, &entry.fused}) {
      const bool isMeasured = stats->count > 0 && !entry.isView;
      cells.push_back(isMeasured ? m_units.time.timeOf(*stats) : entry.isView && stats->count > 0 ? "view" : "");
      cells.push_back(isMeasured ? spreadText(*stats) : "");
    }
    cells.push_back(ratioText(entry));  // one tilde a cell strikes nothing through
    cells.push_back(entry.bytesSaved != 0 ? m_units.bytes.bytesOf(entry.bytesSaved) : "");
    cells.push_back(entry.launchesSaved != 0 ? fmt::format("{}", entry.launchesSaved) : "");
    return cells;
  }

  std::string figures() const {
    std::string text = row({"plan", "unfused", "fused", "saved"}) + "| :-- | --: | --: | --: |\n";
    for (const RunFigure& figure : planFiguresOf(m_record))
      text += row({figure.name, figure.unfused, figure.fused, figure.saved});
    return text;
  }

  /// The empty line after the summary makes the following text Markdown again.
  std::string details() const {
    std::string text = "<details><summary>How it was measured, and where</summary>\n\n";
    for (const std::string& sentence : methodOf(m_record, m_comparison)) text += fmt::format("- {}\n", sentence);
    for (const std::string& sentence : notesOf(m_record)) text += fmt::format("- {}\n", markdownCode(sentence));
    text += "\n| environment | |\n| :-- | :-- |\n";
    for (const auto& [name, value] : m_record.environment) text += row({markdownCode(name), markdownCode(value)});
    text += row({"measured with", markdownCode(m_record.createdWith)});
    return text + row({"pipeline hash", markdownCode(m_record.pipelineHash)}) + "\n</details>\n";
  }

  const RunRecord& m_record;
  Comparison m_comparison;
  ComparisonUnits m_units;
};

}  // namespace

std::string markdownCode(std::string_view text) {
  if (text.empty()) return {};
  const std::string fence(longestTicks(text) + 1, '`');
  std::string code;
  for (const char c : text) {
    code += std::iscntrl(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
  }
  // One space is stripped from both ends; without one a backtick there would join the fence.
  const auto isOuter = [](char c) { return c == '`' || c == ' '; };
  const bool isPadded = isOuter(text.front()) || isOuter(text.back());
  return fmt::format("{0}{1}{2}{1}{0}", fence, isPadded ? " " : "", code);
}

Result<std::string> markdownTable(const RunRecord& record) { return MarkdownTable(record).text(); }

}  // namespace fuseline
