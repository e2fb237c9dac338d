// Compares two runs, and checks gates.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_comparison.h"

#include "core/compare/document_difference.h"
#include "core/profile/run_pipeline.h"
#include "core/support/percent.h"
#include "core/support/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::array<std::string_view, 6> kTotals = {"median", "unfused", "speedup", "peak", "saved", "launches"};
constexpr std::string_view kAnyStep = "step";

/// A pipeline without its symbols, its recipe and its view, which are compared separately.
std::string structureOf(const RunRecord& record) {
  if (!record.pipeline.is_object()) return record.pipelineHash;
  Json pipeline = record.pipeline;
  for (const char* section : {"$schema", "symbols", "recipe", "view"}) pipeline.erase(section);
  return pipeline.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Nothing: one of the records has no pipeline that can be read.
std::optional<std::vector<DocumentChange>> pipelineChanges(const RunRecord& base, const RunRecord& next) {
  const LoadedDocument before = pipelineOf(base);
  const LoadedDocument after = pipelineOf(next);
  if (hasErrors(before.diagnostics) || hasErrors(after.diagnostics)) return std::nullopt;
  std::vector<DocumentChange> changes = documentDifference(before.document, after.document);
  std::erase_if(changes, [](const DocumentChange& change) {
    return change.section == DocumentChange::Section::Symbols || change.section == DocumentChange::Section::Recipe;
  });
  return changes;
}

/// Facts that are expected to change from run to run; causes of a slower device are not among them.
bool isIncidental(const std::string& fact) {
  return fact == "measured at" || fact == "clocks" || fact == "power" || fact == "temperature";
}

std::string cachesName(const RunRecord& record) { return record.settings.startsCold ? "cold" : "as they are"; }

std::string gemmsName(const RunRecord& record) {
  return record.settings.emulates ? "emulated where not native" : "native";
}

class Differences {
 public:
  Differences(const RunRecord& base, const RunRecord& next) : m_base(base), m_next(next) {}

  std::vector<RunComparison::Difference> all() {
    note("device", m_base.deviceName(), m_next.deviceName());
    pipeline();
    note("pass", nameOf(m_base.settings.pass), nameOf(m_next.settings.pass));
    recipe();
    note("rules", nameOf(m_base.settings.rules), nameOf(m_next.settings.rules));
    note("without rules", text(m_base.switches.without), text(m_next.switches.without));
    note("with rules", text(m_base.switches.with), text(m_next.switches.with));
    note("GEMMs", gemmsName(m_base), gemmsName(m_next));
    note("caches", cachesName(m_base), cachesName(m_next));
    note("steps timed by", nameOf(m_base.settings.timing), nameOf(m_next.settings.timing));
    note("program", m_base.createdWith, m_next.createdWith);
    symbols();
    environment();
    return std::move(m_all);
  }

 private:
  void note(const std::string& what, const std::string& base, const std::string& next) {
    if (base != next) m_all.push_back({what, base, next});
  }

  static std::string text(const std::vector<std::string>& rules) { return fmt::format("{}", fmt::join(rules, ", ")); }

  /// Op by op, unless it is another pipeline.
  void pipeline() {
    constexpr std::size_t kMostChanges = 8;
    if (structureOf(m_base) == structureOf(m_next)) return;
    const std::optional<std::vector<DocumentChange>> changes = pipelineChanges(m_base, m_next);
    if (!changes || changes->size() > kMostChanges) return note("pipeline", m_base.pipelineHash, m_next.pipelineHash);
    for (const DocumentChange& change : *changes) {
      if (change.kind == DocumentChange::Kind::Renamed) note(placeOf(change), change.id, change.newId);
      for (const FieldChange& field : change.fields) note(placeOf(change) + after(field.name), field.base, field.next);
    }
  }

  /// " name", or nothing for an empty one.
  static std::string after(const std::string& name) { return name.empty() ? name : " " + name; }

  void noteFields(const std::string& what, const Json& base, const Json& next) {
    for (const FieldChange& field : changedFields(base, next)) note(what + after(field.name), field.base, field.next);
  }

  /// Fields of one recipe; those of two recipes say nothing.
  void recipe() {
    note("recipe", m_base.settings.recipe, m_next.settings.recipe);
    if (m_base.settings.recipe != m_next.settings.recipe) return;
    noteFields("recipe", objectAt(m_base.recipe, "fields"), objectAt(m_next.recipe, "fields"));
    const auto overrides = [](const RunRecord& record) { return record.recipe.value("overrides", Json()).dump(); };
    if (m_base.recipe.is_object() && m_next.recipe.is_object())
      note("recipe overrides", overrides(m_base), overrides(m_next));
  }

  /// The symbols of the pipeline, and the values that the run's settings replaced.
  static Json symbolsOf(const RunRecord& record) {
    Json symbols = objectAt(record.pipeline, "symbols");
    for (const auto& [name, value] : record.settings.symbols) symbols[name] = value;
    return symbols;
  }

  void symbols() { noteFields("symbol", symbolsOf(m_base), symbolsOf(m_next)); }

  void environment() {
    for (const RunRecord* record : {&m_base, &m_next})
      for (const auto& [name, value] : record->environment)
        if (!isIncidental(name)) noteOnce(name, m_base.fact(name), m_next.fact(name));
  }

  void noteOnce(const std::string& what, const std::string& base, const std::string& next) {
    if (std::ranges::count(m_all, what, &RunComparison::Difference::what) == 0) note(what, base, next);
  }

  const RunRecord& m_base;
  const RunRecord& m_next;
  std::vector<RunComparison::Difference> m_all;
};

/// Changes between the samples of two runs.
class Changes {
 public:
  Changes(const RunRecord& base, const RunRecord& next) : m_base(base), m_next(next) {}

  MetricChange of(std::string name, std::string unit, const std::vector<double>& base,
                  const std::vector<double>& next) const {
    return {.name = std::move(name),
            .phase = {},
            .unit = std::move(unit),
            .base = summarize(base),
            .next = summarize(next),
            .change = changeBetween(m_base, m_next, base, next)};
  }

 private:
  const RunRecord& m_base;
  const RunRecord& m_next;
};

/// A number that is counted, not measured: any change of it is one.
MetricChange countOf(std::string name, std::string unit, std::int64_t base, std::int64_t next) {
  const auto of = [](std::int64_t count) { return summarize(std::array{static_cast<double>(count)}); };
  const double ratio = base == next ? 1.0 : static_cast<double>(next) / static_cast<double>(base);  // from 0: infinite
  return {.name = std::move(name),
          .phase = {},
          .unit = std::move(unit),
          .base = of(base),
          .next = of(next),
          .change = {.median = ratio, .low = ratio, .high = ratio}};
}

std::vector<double> samplesOf(const RunRecord& record, const char* variant) {
  const VariantRecord* found = record.variant(variant);
  return found ? found->endToEndNs : std::vector<double>();
}

std::vector<double> speedupsOf(const RunRecord& record) {
  return ratiosOf(samplesOf(record, "unfused"), samplesOf(record, "fused"));
}

std::vector<MetricChange> totalsOf(const RunRecord& base, const RunRecord& next, const std::string& variant) {
  const Changes changes(base, next);
  const VariantRecord& before = *base.variant(variant);
  const VariantRecord& after = *next.variant(variant);
  std::vector<MetricChange> totals = {changes.of("median", "ns", before.endToEndNs, after.endToEndNs)};
  if (variant != "unfused") {
    totals.push_back(changes.of("unfused", "ns", samplesOf(base, "unfused"), samplesOf(next, "unfused")));
    totals.push_back(changes.of("speedup", "x", speedupsOf(base), speedupsOf(next)));
  }
  totals.push_back(countOf("peak", "bytes", before.peakBytes, after.peakBytes));
  totals.push_back(countOf("saved", "bytes", before.savedForBackwardBytes, after.savedForBackwardBytes));
  totals.push_back(countOf("launches", "", before.launches, after.launches));
  std::erase_if(totals, [](const MetricChange& total) { return total.base.count == 0 && total.next.count == 0; });
  return totals;
}

/// The same step in another run. The gather and the scatter of a layer have one name, and differ in their kernel.
const StepRecord* sameStep(const VariantRecord& variant, const StepRecord& step) {
  const auto found = std::ranges::find_if(variant.steps, [&](const StepRecord& other) {
    return other.name == step.name && other.phase == step.phase && other.kernel == step.kernel;
  });
  return found == variant.steps.end() ? variant.find(step.name, step.phase) : &*found;
}

std::vector<MetricChange> stepsOf(const VariantRecord& base, const VariantRecord& next, const Changes& changes) {
  static const std::vector<double> kNone;
  std::vector<MetricChange> steps;
  const auto add = [&](const StepRecord& step, const std::vector<double>& before, const std::vector<double>& after) {
    if (step.isView) return;
    steps.push_back(changes.of(step.name, "ns", before, after));
    steps.back().phase = step.phase;
  };
  for (const StepRecord& step : next.steps) {
    const StepRecord* before = sameStep(base, step);
    add(step, before ? before->samplesNs : kNone, step.samplesNs);
  }
  for (const StepRecord& step : base.steps)
    if (!sameStep(next, step)) add(step, step.samplesNs, kNone);
  return steps;
}

/// "+12.3 %"
std::string percentText(double ratio) {
  return std::isinf(ratio) ? "from 0" : fmt::format("{:+.1f} %", 100.0 * (ratio - 1.0));
}

std::string valueText(const MetricChange& metric, double value) {
  if (metric.unit == "ns") return formatDuration(value);
  if (metric.unit == "bytes") return formatBytes(static_cast<std::int64_t>(value));
  return metric.unit == "x" ? fmt::format("{:.3f}x", value) : fmt::format("{:g}", value);
}

/// A limit is crossed where the change is beyond it, and is one.
bool crosses(const MetricChange& metric, const Gate& gate) {
  const double percent = 100.0 * (metric.change.median - 1.0);
  const bool isBeyond = gate.isAbove ? percent > gate.percent : percent < gate.percent;
  return isBeyond && metric.change.isSignificant();
}

/// Counts are the same in every round.
bool hasTooFewRounds(const MetricChange& metric) {
  const bool isMeasured = metric.unit == "ns" || metric.unit == "x";
  return isMeasured && std::min(metric.base.count, metric.next.count) < kRoundsForAClaim;
}

std::string sentenceOf(const MetricChange& metric) {
  const std::string where = metric.phase.empty() ? "" : fmt::format(" ({})", metric.phase);
  std::string text = fmt::format("{}{}: {} to {}, {}", metric.name, where, valueText(metric, metric.base.median),
                                 valueText(metric, metric.next.median), percentText(metric.change.median));
  if (metric.change.low != metric.change.high)
    text += fmt::format(" [{}, {}]", percentText(metric.change.low), percentText(metric.change.high));
  return text + (metric.change.isSignificant() || metric.change.median == 1.0 ? "" : ", which is not significant");
}

Error gateError(const Gate& gate, std::string_view problem) {
  return {fmt::format("--fail-if \"{}\": {}", gate.text, problem)};
}

/// The worst in the direction of the gate.
const MetricChange* worstOf(const std::vector<MetricChange>& steps, const Gate& gate) {
  const MetricChange* worst = nullptr;
  for (const MetricChange& step : steps) {
    if (!step.isInBoth()) continue;
    const bool isWorse =
        !worst || (crosses(step, gate) && !crosses(*worst, gate)) ||
        (crosses(step, gate) == crosses(*worst, gate) &&
         (gate.isAbove ? step.change.median > worst->change.median : step.change.median < worst->change.median));
    if (isWorse) worst = &step;
  }
  return worst;
}

const MetricChange* find(const RunComparison& comparison, const Gate& gate) {
  if (gate.metric == kAnyStep) return worstOf(comparison.steps, gate);
  const auto found = std::ranges::find(comparison.totals, gate.metric, &MetricChange::name);
  return found == comparison.totals.end() || !found->isInBoth() ? nullptr : &*found;
}

std::string metricNames() { return fmt::format("{} or {}", fmt::join(kTotals, ", "), kAnyStep); }

Error gateError(std::string_view text, std::string_view problem) {
  return {fmt::format("--fail-if \"{}\": {} Expected a condition such as \"median>+5%\" or \"speedup<-5%\".", text,
                      problem),
          ErrorKind::Usage};
}

bool isMetric(std::string_view name) { return name == kAnyStep || std::ranges::count(kTotals, name) > 0; }

}  // namespace

std::string changeText(const MetricChange& metric) {
  if (!metric.isInBoth()) return metric.base.count > 0 ? "gone" : "new";
  if (metric.change.median == 1.0) return "same";
  return (metric.change.isSignificant() ? "" : "~") + percentText(metric.change.median);
}

std::optional<bool> hasImproved(const MetricChange& metric) {
  if (!metric.isInBoth() || metric.change.median == 1.0 || !metric.change.isSignificant()) return std::nullopt;
  return (metric.change.median < 1.0) != (metric.unit == "x");
}

bool RunComparison::isOneDevice() const { return std::ranges::count(differences, "device", &Difference::what) == 0; }

bool tookTurns(const RunRecord& base, const RunRecord& next) {
  return !base.roundsId.empty() && base.roundsId == next.roundsId;
}

RatioStats changeBetween(const RunRecord& base, const RunRecord& next, std::span<const double> baseSamples,
                         std::span<const double> nextSamples) {
  return tookTurns(base, next) ? compareRounds(nextSamples, baseSamples) : compareApart(nextSamples, baseSamples);
}

Result<RunComparison> compareRuns(const RunRecord& base, const RunRecord& next) {
  for (const char* variant : {"fused", "unfused"}) {
    const VariantRecord* before = base.variant(variant);
    const VariantRecord* after = next.variant(variant);
    if (before && after)
      return RunComparison{.differences = Differences(base, next).all(),
                           .isPaired = tookTurns(base, next),
                           .variant = variant,
                           .totals = totalsOf(base, next, variant),
                           .steps = stepsOf(*before, *after, Changes(base, next))};
  }
  return Error{
      fmt::format("{} and {}: one run has only the fused plan, the other only the unfused one. Run both with "
                  "--variants unfused,fused.",
                  base.title(), next.title())};
}

Result<Gate> parseGate(std::string_view text) {
  const std::size_t sign = text.find_first_of("<>");
  if (sign == std::string_view::npos) return gateError(text, "expected > or <, found neither.");
  Gate gate{.text = std::string(text), .metric = std::string(text.substr(0, sign)), .isAbove = text[sign] == '>'};
  if (gate.metric == "p50") gate.metric = "median";
  if (!isMetric(gate.metric))
    return gateError(text, fmt::format("expected {}, found \"{}\".", metricNames(), gate.metric));
  const std::optional<double> percent = parsePercent(text.substr(sign + 1));
  if (!percent)
    return gateError(text, fmt::format("expected a percentage, such as +5%, found \"{}\".", text.substr(sign + 1)));
  gate.percent = *percent;
  return gate;
}

Result<GateResult> check(const Gate& gate, const RunComparison& comparison) {
  const MetricChange* metric = find(comparison, gate);
  if (!metric)
    return gateError(gate, "one of the runs does not have this metric. Run both with --variants unfused,fused.");
  if (metric->unit == "ns" && !comparison.isOneDevice())
    return gateError(
        gate, "the runs are from two devices, so their times cannot be compared. Use speedup, peak or launches.");
  if (hasTooFewRounds(*metric))
    return gateError(
        gate,
        fmt::format("{} and {} rounds are too few for statistical significance. Run both with --iterations {} or more.",
                    metric->base.count, metric->next.count, kRoundsForAClaim));
  return GateResult{.gate = gate, .isMet = !crosses(*metric, gate), .sentence = sentenceOf(*metric)};
}

}  // namespace fuseline
