// Reads gains from the steps of a run.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/measured_gains.h"

#include "core/profile/step_sums.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (std::size_t round = 0; round < std::min(a.size(), b.size()); ++round) result.push_back(a[round] - b[round]);
  return result;
}

/// A joint fusion has a step in each phase, under one name.
struct Sides {
  Steps unfused;
  Steps fused;
};

std::map<std::string, Sides> sidesOf(const VariantRecord& unfused, const VariantRecord& fused) {
  std::map<std::string, Sides> sides;
  const StepParts allParts(unfused, fused);
  for (const StepRecord& step : fused.steps) {
    if (step.rule.empty()) continue;
    Sides& side = sides[step.name];
    const Steps parts = allParts.of(step);
    side.unfused.insert(side.unfused.end(), parts.begin(), parts.end());
    side.fused.push_back(&step);
  }
  return sides;
}

/// None where there is no round.
std::optional<MeasuredGain> gainOf(const Sides& sides, const std::string& device) {
  const std::vector<double> before = sumPerRound(sides.unfused);
  const std::vector<double> after = sumPerRound(sides.fused);
  const std::vector<double> gains = differences(before, after);
  if (gains.empty()) return std::nullopt;
  const RatioStats speedup = compareRounds(before, after);
  return MeasuredGain{.gainNs = summarize(gains).median,
                      .speedup = speedup.median,
                      .speedupLow = speedup.low,
                      .speedupHigh = speedup.high,
                      .device = device};
}

/// 0 for copies to the host and back, which are concurrent with other steps, and use another link.
double bytesPerSecond(const StepRecord& step) {
  if (step.isTransfer()) return 0.0;
  const double medianNs = summarize(step.samplesNs).median;
  return step.isView || medianNs <= 0.0 ? 0.0 : 1e9 * static_cast<double>(step.bytes) / medianNs;
}

DeviceModel modelOf(const VariantRecord& unfused, std::string_view runName, const std::string& device) {
  DeviceModel model;
  for (const StepRecord& step : unfused.steps) {
    const double rate = bytesPerSecond(step);
    if (rate <= model.bandwidthBytesPerSecond) continue;
    model.bandwidthBytesPerSecond = rate;
    model.source = fmt::format("the fastest step of {}, {} ({}), on {}", runName, step.name, step.phase, device);
  }
  return model;
}

/// The part of a pipeline that determines sizes and dtypes: without the view and the choice of fusions.
Json workOf(const Json& pipeline) {
  Json work = pipeline;
  for (const char* key : {"view", "fusion", "$schema", "formatVersion", "symbols"}) work.erase(key);
  return work;
}

Json symbolsOf(const Json& pipeline, const RunSpec& settings) {
  Json symbols = objectAt(pipeline, "symbols");
  for (const auto& [name, value] : settings.symbols) symbols[name] = value;
  return symbols;
}

Verdict sameSymbols(const Json& measured, const Json& wanted) {
  for (const auto& [name, value] : wanted.items())
    if (!measured.contains(name) || measured[name] != value)
      return Verdict::no(fmt::format("it was measured with {} = {}, but here {} is {}.", name,
                                     measured.contains(name) ? measured[name].dump() : "nothing", name, value.dump()));
  return Verdict::yes();
}

Verdict sameSettings(const RunSpec& measured, const RunSpec& wanted) {
  const std::array<std::array<std::string, 3>, 4> settings = {
      {{"pass", nameOf(measured.pass), nameOf(wanted.pass)},
       {"device", measured.device, wanted.device},
       {"recipe", measured.recipe, wanted.recipe},
       {"ranks", std::to_string(measured.ranks), std::to_string(wanted.ranks)}}};
  for (const auto& [name, before, now] : settings)
    if (before != now)
      return Verdict::no(fmt::format("it was measured with {} {}, but here it is {}.", name, before, now));
  return Verdict::yes();
}

/// Compares recipes of one name. Records of older programs contain only the fields.
Verdict sameRecipe(const RunRecord& run, const RunSpec& settings, const Json& recipe) {
  const bool areBothKnown = !run.recipe.is_null() && !recipe.is_null();
  if (areBothKnown ? run.recipe == recipe : run.settings.recipeFields == settings.recipeFields) return Verdict::yes();
  return Verdict::no(
      fmt::format("it was measured with other fields or overrides of the recipe {}.", run.settings.recipe));
}

}  // namespace

Result<GainModel> gainsOf(const RunRecord& run, std::string_view runName) {
  const VariantRecord* unfused = run.variant("unfused");
  const VariantRecord* fused = run.variant("fused");
  if (!unfused || !fused)
    return Error{
        fmt::format("{}: expected the unfused and the fused variant, found only the {} one. Run without --variants.",
                    runName, unfused ? "unfused" : "fused")};
  if (!run.settings.timesSteps())
    return Error{
        fmt::format("{}: expected step times, found only end-to-end times. Run without --timing none.", runName)};
  const std::string device = run.deviceName();
  GainModel gains{.device = modelOf(*unfused, runName, device)};
  for (const auto& [name, sides] : sidesOf(*unfused, *fused))
    if (const std::optional<MeasuredGain> gain = gainOf(sides, device))
      gains.measured.emplace(name, std::make_shared<const MeasuredGain>(*gain));
  return gains;
}

void merge(GainModel& gains, GainModel more) {
  if (more.device.bandwidthBytesPerSecond > gains.device.bandwidthBytesPerSecond) gains.device = more.device;
  for (auto& [name, gain] : more.measured) gains.measured.insert_or_assign(name, std::move(gain));
}

Verdict measuredSame(const RunRecord& run, const Json& pipeline, const RunSpec& settings, const Json& recipe) {
  if (!run.pipeline.is_object()) return Verdict::no("it does not contain its pipeline.");
  if (workOf(run.pipeline) != workOf(pipeline))
    return Verdict::no("it measured another pipeline, or this one before it was changed.");
  if (Verdict symbols = sameSymbols(symbolsOf(run.pipeline, run.settings), symbolsOf(pipeline, settings)); !symbols)
    return symbols;
  if (Verdict same = sameSettings(run.settings, settings); !same) return same;
  return sameRecipe(run, settings, recipe);
}

}  // namespace fuseline
