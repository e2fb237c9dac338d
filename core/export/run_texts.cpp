// Sentences about a run.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/run_texts.h"

#include "core/profile/cold_costs.h"
#include "core/profile/comparison_text.h"
#include "core/support/text.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// Those that a comparison has, under names of ours.
std::vector<const VariantRecord*> comparedVariants(const RunRecord& record) {
  std::vector<const VariantRecord*> variants = {record.variant("unfused"), record.variant("fused")};
  std::erase(variants, nullptr);
  return variants;
}

bool hasBoth(const RunRecord& record) { return comparedVariants(record).size() == 2; }

std::string pairsText(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : pairs) texts.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string symbolsText(const RunSpec& settings) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : settings.symbols) texts.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string timeText(const SampleStats& stats) {
  const ColumnUnit unit = timeUnitFor(stats.median);
  const std::string spread = stats.hasSpread() ? fmt::format(" ± {} %", spreadText(stats)) : "";
  return fmt::format("{} {}{}", unit.timeOf(stats), unit.name, spread);
}

std::string roundsText(const RunRecord& record, const Comparison& comparison) {
  const int numRounds = std::max(comparison.endToEnd.unfused.count, comparison.endToEnd.fused.count);
  if (numRounds == 0) return "No round was completed, so there are no times.";
  return fmt::format("Times are medians of {} after {}{}.", plural(numRounds, "round"),
                     plural(record.warmups(), "warm-up run"),
                     hasBoth(record) ? ", interleaving the unfused and the fused plan" : "");
}

std::string clockText(const RunRecord& record) {
  const StepTiming timing = record.settings.timing;
  if (timing == StepTiming::None) return "Steps were not timed: whole passes only.";
  if (timing == StepTiming::Cupti)
    return "Step times are sums of their kernels, traced by CUPTI; whole passes ran without tracing.";
  if (timing == StepTiming::Events) return "Steps were timed by the device's own clock (events).";
  if (timing == StepTiming::Host) return "Steps were timed by the host's clock.";
  return "The run does not contain the clock of its steps.";
}

/// "+1.2 %": overhead of the instrumentation in a pass.
std::string overheadText(const VariantRecord& variant) {
  const double plain = summarize(variant.endToEndNs).median;
  const double instrumented = summarize(variant.instrumentedNs).median;
  if (plain <= 0.0 || instrumented <= 0.0) return {};
  return fmt::format("{:+.1f} % ({})", 100.0 * (instrumented / plain - 1.0), variant.name);
}

std::string separationText(const RunRecord& record) {
  std::vector<std::string> overheads;
  for (const VariantRecord* variant : comparedVariants(record))
    if (std::string text = overheadText(*variant); !text.empty()) overheads.push_back(std::move(text));
  if (overheads.empty()) return {};
  return fmt::format("End-to-end times are from separate passes without {}, which cost {}.",
                     record.settings.isTraced() ? "a trace" : "clocks", fmt::join(overheads, " and "));
}

std::string unattributedText(const RunRecord& record) {
  if (!record.settings.isTraced()) return "Kernels were not traced, so times of single kernels are unknown.";
  std::vector<std::string> texts;
  for (const VariantRecord* variant : comparedVariants(record))
    texts.push_back(fmt::format("{} ({})", timeText(summarize(variant->unattributedNs())), variant->name));
  return fmt::format("Device activity outside of all steps: {}.", fmt::join(texts, ", "));
}

using CountOf = std::function<std::int64_t(const VariantRecord&)>;

RunFigure figure(const RunRecord& record, std::string name, const CountOf& countOf,
                 std::string (*textOf)(std::int64_t)) {
  const VariantRecord* unfused = record.variant("unfused");
  const VariantRecord* fused = record.variant("fused");
  return {.name = std::move(name),
          .unfused = unfused ? textOf(countOf(*unfused)) : "",
          .fused = fused ? textOf(countOf(*fused)) : "",
          .saved = unfused && fused ? textOf(countOf(*unfused) - countOf(*fused)) : ""};
}

std::string countText(std::int64_t count) { return fmt::format("{}", count); }

}  // namespace

std::string headlineOf(const Comparison& comparison) {
  const ComparisonRow& whole = comparison.endToEnd;
  if (whole.unfused.count > 0 && whole.fused.count > 0)
    return fmt::format("{}, from {} unfused to {} fused", ratioText(whole), timeText(whole.unfused),
                       timeText(whole.fused));
  if (whole.unfused.count > 0) return timeText(whole.unfused) + " unfused";
  return whole.fused.count > 0 ? timeText(whole.fused) + " fused" : "nothing was measured";
}

NamedTexts settingsOf(const RunRecord& record) {
  const RunSpec& settings = record.settings;
  const std::string name = record.fact("device");
  NamedTexts texts = {
      {"label", settings.label},
      {"device", name.empty() ? settings.device : fmt::format("{} ({})", settings.device, name)},
      {"pass", settings.pass == ExecutionMode::Training ? "train (forward and backward)" : nameOf(settings.pass)},
      {"rules", nameOf(settings.rules)},
      {"recipe", settings.recipe.empty() ? "the pipeline's own" : settings.recipe},
      {"recipe fields", pairsText(settings.recipeFields)},
      {"optimizer", settings.optimizer == Optimizer::None ? "" : nameOf(settings.optimizer)},
      {"optimizer fields", pairsText(settings.optimizerFields)},
      {"without", fmt::format("{}", fmt::join(record.switches.without, ", "))},
      {"with", fmt::format("{}", fmt::join(record.switches.with, ", "))},
      {"symbols", symbolsText(settings)},
      {"seed", fmt::format("{}", settings.seed)},
  };
  std::erase_if(texts, [](const auto& entry) { return entry.second.empty(); });
  return texts;
}

std::vector<std::string> methodOf(const RunRecord& record, const Comparison& comparison) {
  std::vector<std::string> sentences = {
      record.isPartial ? "Partial: the run was cancelled, and only complete rounds are shown." : "",
      roundsText(record, comparison),
      "± is half the interquartile range, in percent of the median.",
      hasBoth(record) ? "~ marks a speed-up that is not significant: the 95 % interval of its per-round ratios "
                        "includes 1. Ratios in parentheses are noise: the step is the same in both plans."
                      : "Only one plan was measured, so there is no speed-up.",
      clockText(record),
      cachesText(record),
      record.settings.timesSteps() ? separationText(record) : "",
      record.settings.timesSteps() ? unattributedText(record) : "",
      "Bytes and FLOP are the minimum that a step needs, computed and not measured; memory is that of the plans.",
      "This run has no numerics. `fuseline run --numerics` measures them.",
  };
  std::erase(sentences, "");
  return sentences;
}

std::vector<std::string> notesOf(const RunRecord& record) {
  std::vector<std::string> sentences;
  if (std::string text = firstRunText(record); !text.empty()) sentences.push_back(std::move(text));
  if (!record.timingNote.empty()) sentences.push_back(fmt::format("Reason for this clock: {}.", record.timingNote));
  for (const VariantRecord& variant : record.variants)
    if (!variant.launching.empty())
      sentences.push_back(fmt::format("Launches of {}: {}.", variant.name, variant.launching));
  for (const VariantRecord& variant : record.variants)
    for (const StepRecord& step : variant.steps)
      for (const std::string& way : step.ways) {
        std::string sentence = fmt::format("{} ({}): {}.", step.name, step.phase, way);
        if (std::ranges::count(sentences, sentence) == 0) sentences.push_back(std::move(sentence));
      }
  return sentences;
}

std::vector<RunFigure> planFiguresOf(const RunRecord& record) {
  std::vector<RunFigure> figures = {
      figure(record, "peak memory", &VariantRecord::peakBytes, formatBytes),
      figure(record, "saved for backward", &VariantRecord::savedForBackwardBytes, formatBytes)};
  if (std::ranges::any_of(record.variants, [](const VariantRecord& variant) { return variant.hostBytes > 0; }))
    figures.push_back(figure(record, "offloaded to host memory", &VariantRecord::hostBytes, formatBytes));
  figures.push_back(figure(record, "steps", &VariantRecord::numSteps, countText));
  figures.push_back(figure(record, "launches", &VariantRecord::launches, countText));
  if (record.settings.isTraced())
    figures.push_back(figure(record, "kernels, copies and fills", &VariantRecord::numTraced, countText));
  return figures;
}

}  // namespace fuseline
