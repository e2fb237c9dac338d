// Puts a page together. Style and script are in resources/report.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/html_report.h"

#include "core/export/drawing/svg_graph.h"
#include "core/export/fusion_misses.h"
#include "core/export/html_graph.h"
#include "core/export/html_steps.h"
#include "core/export/run_texts.h"
#include "core/profile/doubts.h"
#include "core/profile/headline.h"
#include "core/profile/run_page.h"
#include "core/profile/step_sums.h"
#include "core/quant/recipe.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

struct ReportTexts {
#define FUSELINE_REPORT_TEXT(name, text) const char* name = text;
#include "core/export/report_texts.inc"
#undef FUSELINE_REPORT_TEXT
};

Html listOf(const std::vector<Html>& sentences) {
  Html items;
  for (const Html& sentence : sentences) items += element("li", sentence);
  return items.isEmpty() ? Html() : element("ul", items);
}

/// A trusted sentence, with text between backticks as code.
Html prose(std::string_view sentence) {
  Html html;
  for (bool isCode = false; !sentence.empty(); isCode = !isCode) {
    const std::string_view part = sentence.substr(0, sentence.find('`'));
    html += isCode ? textElement("code", part) : Html::text(part);
    sentence.remove_prefix(std::min(part.size() + 1, sentence.size()));
  }
  return html;
}

Html definitions(const NamedTexts& entries) {
  Html list;
  for (const auto& [name, value] : entries) list += textElement("dt", name) + textElement("dd", value);
  return element("dl", {{"class", "facts"}}, list);
}

Html section(const char* title, const Html& content) { return element("section", textElement("h2", title) + content); }

/// One figure of the summary.
Html card(std::string_view name, const std::string& value, const std::string& detail) {
  return element("div", {{"class", "card"}},
                 textElement("span", name) + textElement("strong", value) + textElement("small", detail));
}

class HtmlReport {
 public:
  explicit HtmlReport(const RunRecord& record, std::span<const NamedRun> bases = {}, const LayOutGraph& layOut = {})
      : m_record(record),
        m_bases(bases),
        m_comparison(compareVariants(record)),
        m_graph(reportGraph(record, m_comparison, layOut)) {}

  /// The mark is near the beginning; it identifies the page as a run.
  std::string page() const {
    const ReportTexts texts;
    const Html head = "<meta charset=\"utf-8\">"_html + Html::verbatim(std::string(kRunPageMark)) + policy() +
                      textElement("title", m_record.title() + ": " + headlineOf(m_comparison)) +
                      element("style", Html::verbatim(graphStyle() + texts.style));
    const Html script = element("script", Html::verbatim(texts.script));
    const Html body =
        header() + element("main", sections()) + footer() + Html::verbatim(runElement(m_record) + "\n") + script;
    return "<!doctype html>\n" +
           element("html", {{"lang", "en"}}, element("head", head) + "\n"_html + element("body", body)).toString() +
           "\n";
  }

 private:
  /// Nothing is loaded, independent of the record's content.
  static Html policy() {
    return "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
           "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"_html;
  }

  std::string graphStyle() const {
    if (m_graph.markup.isEmpty()) return {};
    return "@media screen and (prefers-color-scheme: dark) {\n" + drawingStyle() + "}\n";
  }

  Html header() const {
    std::vector<std::string> settings;
    for (const auto& [name, value] : settingsOf(m_record)) settings.push_back(fmt::format("{} {}", name, value));
    return element("header", textElement("h1", m_record.title()) +
                                 textElement("p", fmt::format("{}", fmt::join(settings, " · "))) +
                                 (m_record.note.empty() ? Html() : textElement("blockquote", m_record.note)));
  }

  Html sections() const {
    return section("Result", summary() + doubts()) +
           section(
               "Plans",
               "<p>Each box is a step of the fused plan, in the order of execution; it contains the steps of the unfused plan that it replaces.</p>"_html +
                   planDrawing(m_comparison)) +
           (m_graph.markup.isEmpty() ? Html() : section("Graph", m_graph.markup)) +
           section("Steps", element("div", {{"class", "wide"}}, stepTable(m_record, m_comparison, m_graph.ops))) +
           stretches() + beside() + section("Fusions that did not apply", misses()) +
           section("Low precision", quantization()) + section("How it was measured", method()) +
           section("Environment", environment());
  }

  /// The user's notes about time ranges of the timeline.
  Html stretches() const {
    std::vector<Html> notes;
    for (const StretchNote& note : m_record.stretchNotes) notes.push_back(Html::text(stretchNoteLine(note)));
    return notes.empty() ? Html() : section("Notes on the timeline", listOf(notes));
  }

  Html beside() const {
    Html content;
    for (const NamedRun& base : m_bases) content += comparisonOf(base, m_record);
    return content.isEmpty() ? Html() : section("Against other runs", content);
  }

  Html summary() const {
    const ComparisonRow& whole = m_comparison.endToEnd;
    const bool hasBoth = whole.unfused.count > 0 && whole.fused.count > 0;
    Html cards = card("end to end, unfused", timeOf(whole.unfused), spreadOf(whole.unfused)) +
                 card("end to end, fused", timeOf(whole.fused), spreadOf(whole.fused)) +
                 card("speed-up", hasBoth ? ratioText(whole) : "not measured", intervalText(whole, hasBoth));
    for (const RunFigure& figure : planFiguresOf(m_record))
      cards += card(figure.name, figure.fused.empty() ? figure.unfused : figure.fused, savingText(figure));
    return element("div", {{"class", "cards"}}, cards) + paragraphOf(headlineCaveat(whole));
  }

  static Html paragraphOf(const std::string& sentence) {
    return sentence.empty() ? Html() : element("p", {{"class", "doubt"}}, Html::text(sentence));
  }

  Html doubts() const {
    Html paragraphs;
    for (const std::string& doubt : doubtsOf(m_record))
      paragraphs += element("p", {{"class", "doubt"}}, textElement("strong", "Doubtful. ") + Html::text(doubt));
    return paragraphs;
  }

  static std::string timeOf(const SampleStats& stats) {
    const ColumnUnit unit = timeUnitFor(stats.median);
    return stats.count > 0 ? fmt::format("{} {}", unit.timeOf(stats), unit.name) : "not measured";
  }

  static std::string spreadOf(const SampleStats& stats) {
    if (stats.count == 0) return {};
    return fmt::format("± {} %, {} rounds", spreadText(stats), stats.count);
  }

  static std::string intervalText(const ComparisonRow& whole, bool hasBoth) {
    if (!hasBoth) return {};
    const int decimals = decimalsOfSpeedup(whole);
    return fmt::format("95 % CI {:.{}f}x to {:.{}f}x{}", whole.speedup.low, decimals, whole.speedup.high, decimals,
                       whole.isClear() ? "" : ": not statistically significant");
  }

  static std::string savingText(const RunFigure& figure) {
    if (figure.saved.empty()) return {};
    return fmt::format("fused; unfused {}, saved {}", figure.unfused, figure.saved);
  }

  Html misses() const {
    const FusionMisses found = fusionMissesOf(m_record);
    if (!found.unknown.empty()) return textElement("p", "Not known. " + found.unknown);
    Html items;
    for (const FusionMiss& miss : found.misses) items += itemOf(miss);
    return textElement("p", fmt::format("Planned by this version (fuseline {}) for a device with a kernel for every "
                                        "fusion; the run does not contain the reasons of its own plan.",
                                        version())) +
           differences(found.differing) + (items.isEmpty() ? "<p>None.</p>"_html : element("ul", items)) +
           distant(found.numDistant);
  }

  static Html differences(const std::vector<std::string>& steps) {
    if (steps.empty()) return {};
    return textElement("p",
                       fmt::format("This version's plan differs from the measured one. Steps of only one of them: {}.",
                                   fmt::join(steps, ", ")));
  }

  static Html distant(std::size_t count) {
    if (count == 0) return {};
    return element("p", prose(fmt::format("{} more match only one op. `fuseline explain` lists them.", count)));
  }

  static Html itemOf(const FusionMiss& miss) {
    Html item = textElement("b", miss.rule) +
                Html::text(fmt::format(" at {} ({}), {}: {}", miss.ops, miss.pass, miss.outcome, miss.explanation));
    for (const std::string& fix : miss.fixes) item += "<br>"_html + Html::text("Fix: " + fix);
    if (!miss.gain.empty()) item += "<br>"_html + textElement("small", miss.gain);
    return element("li", item);
  }

  Html quantization() const {
    if (!m_record.recipe.is_object())
      return m_record.settings.recipe == builtinRecipes().front().name
                 ? "<p>None: the run quantized nothing.</p>"_html
                 : "<p>Unknown: the run does not contain its recipe.</p>"_html;
    NamedTexts fields;
    for (const auto& [name, value] : m_record.recipe.items())
      fields.emplace_back(name, value.is_string() ? value.get<std::string>()
                                                  : value.dump(-1, ' ', false, Json::error_handler_t::replace));
    for (const VariantRecord& variant : m_record.variants)
      if (std::string text = quantizeStepsText(variant); !text.empty())
        fields.emplace_back("quantizing, " + variant.name, std::move(text));
    return definitions(fields);
  }

  /// Quantization inside a fused step is in that step's time, and not here.
  static std::string quantizeStepsText(const VariantRecord& variant) {
    Steps steps;
    for (const StepRecord& step : variant.steps)
      if (step.kernel == "quantize") steps.push_back(&step);
    if (steps.empty()) return {};
    const SampleStats stats = summarize(sumPerRound(steps));
    return fmt::format("{} separate steps, {}", steps.size(),
                       stats.count > 0 ? formatDuration(stats.median) : "not timed");
  }

  Html method() const {
    std::vector<Html> sentences;
    for (const std::string& sentence : methodOf(m_record, m_comparison)) sentences.push_back(prose(sentence));
    for (const std::string& sentence : notesOf(m_record)) sentences.push_back(Html::text(sentence));
    return listOf(sentences);
  }

  Html environment() const {
    NamedTexts facts = m_record.environment;
    facts.emplace_back("measured with", m_record.createdWith);
    facts.emplace_back("pipeline hash", m_record.pipelineHash);
    return definitions(facts);
  }

  static Html footer() {
    return "<footer><p>This page contains the run. <code>fuseline-designer</code>, <code>fuseline compare</code> and <code>fuseline export</code> read it like a run file.</p></footer>"_html;
  }

  const RunRecord& m_record;
  std::span<const NamedRun> m_bases;
  Comparison m_comparison;
  ReportGraph m_graph;
};

}  // namespace

Result<std::string> htmlReport(const RunRecord& record) { return HtmlReport(record).page(); }

std::string htmlReportBeside(const RunRecord& record, std::span<const NamedRun> bases, const LayOutGraph& layOut) {
  return HtmlReport(record, bases, layOut).page();
}

}  // namespace fuseline
