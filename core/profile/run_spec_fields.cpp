// The table of a run's fields.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/analysis.h"
#include "core/profile/run_spec.h"
#include "core/quant/recipe.h"

#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

std::string recipeHelp() {
  std::vector<std::string> names;
  for (const RecipeDefinition& recipe : builtinRecipes()) names.push_back(recipe.name);
  return fmt::format("Quantization recipe: {} (default: that of the pipeline file)", fmt::join(names, ", "));
}

std::string deviceHelp() {
  return fmt::format("cpu, reference (exact and slow, for comparison), cuda[:N], or an architecture to plan for: {}",
                     fmt::join(plannedArchitectures(), ", "));
}

/// An option with a value. label: empty for a field that is not in the dialog.
SpecField valued(std::string_view key, SpecMember member, SpecGroup group, std::string_view option,
                 std::string_view placeholder, std::string_view help, std::string_view label = {}) {
  return {.key = key,
          .member = member,
          .group = group,
          .option = option,
          .placeholder = placeholder,
          .help = help,
          .label = label};
}

SpecField flag(std::string_view key, SpecMember member, SpecGroup group, std::string_view option, std::string_view help,
               std::string_view label = {}) {
  return valued(key, member, group, option, {}, help, label);
}

/// For a flag that is on unless it is switched off.
SpecField withOffHelp(SpecField field, std::string_view help) {
  field.offHelp = help;
  return field;
}

SpecField within(SpecField field, int least, int most) {
  field.least = least;
  field.most = most;
  return field;
}

SpecField counted(SpecField field, std::string_view unit, std::string_view automatic = {}) {
  field.unit = unit;
  field.automatic = automatic;
  return field;
}

SpecField formerly(SpecField field, std::string_view option) {
  field.formerOption = option;
  return field;
}

std::vector<SpecField> makeFields() {
  using enum SpecGroup;
  static const std::string ofDevices = deviceHelp();
  static const std::string ofRecipes = recipeHelp();
  return {
      valued("device", &RunSpec::device, Planning, "device", "DEVICE", ofDevices),
      valued("pass", &RunSpec::pass, Reading, "pass", "PASS", "forward, or train (forward and backward)"),
      valued("rules", &RunSpec::rules, Planning, "rules", "SET",
             "Fusion rules: te (only those of TransformerEngine) or all (default: as in the pipeline file)"),
      valued("recipe", &RunSpec::recipe, Planning, "recipe", "RECIPE", ofRecipes),
      valued("optimizer", &RunSpec::optimizer, Planning, "optimizer", "NAME",
             "Optimizer that updates the parameters at the end of a training pass: adamw, or none", "O&ptimizer"),
      valued("optimizerFields", &RunSpec::optimizerFields, Planning, "optimizer-set", "KEY=VALUE",
             "Field of the optimizer: lr, beta1, beta2, eps, weight_decay, max_grad_norm, schedule, warmup_steps or "
             "training_steps, as in --optimizer-set lr=3e-4",
             "Optimizer &fields"),
      valued("timing", &RunSpec::timing, Measuring, "timing", "CLOCK",
             "How to time steps: auto (host on a CPU, events on a GPU), host (the host's clock, with a synchronization "
             "after each step), events (GPU timestamps), cupti (each GPU kernel) or none (whole runs only)"),
      flag("emulates", &RunSpec::emulates, Planning, "emulate",
           "Also allow recipes that the GPU does not support natively: their GEMMs use dequantized operands in high "
           "precision",
           "&Emulate recipes that the GPU does not support"),
      withOffHelp(flag("replays", &RunSpec::replays, Measuring, "replay",
                       "Capture the launches as CUDA graphs and replay them, so that host launch time does not count",
                       "Use &CUDA graphs"),
                  "Launch step by step, without CUDA graphs"),
      flag("startsCold", &RunSpec::startsCold, Measuring, "cold",
           "Fill the caches with other data before every run, so that the first reads of a plan come from memory",
           "Begin with c&old caches"),
      formerly(withOffHelp(flag("measuresPeaks", &RunSpec::measuresPeaks, Peaks, "peaks",
                                "Measure the device's peak bandwidth and FLOP/s after the rounds (about 1 s)"),
                           "Do not measure the device's peak bandwidth and FLOP/s (saves about 1 s)"),
               "roofs"),
      counted(
          valued("warmup", &RunSpec::warmup, Measuring, "warmup", "N",
                 "Number of warm-up runs of each plan; a GPU warms up for at least 100 ms; 0: no warm-up", "&Warm-up"),
          "runs"),
      within(counted(valued("iterations", &RunSpec::iterations, Measuring, "iterations", "N|auto",
                            "Number of rounds; auto: until the speed-up is precise", "&Rounds"),
                     "rounds", "auto"),
             0, std::numeric_limits<int>::max()),
      valued("seed", &RunSpec::seed, Measuring, "seed", "SEED",
             "Seed of the random inputs, parameters, gradients and dropout", "&Seed"),
      within(valued("ranks", &RunSpec::ranks, Ranks, "ranks", "N",
                    "Number of tensor-parallel ranks; on the CPU they are threads that share its cores"),
             1, 64),
      flag("deterministic", &RunSpec::isDeterministic, Ranks, "deterministic",
           "Sum over ranks in rank order, in float32, rounded once, instead of in NCCL's order: bitwise "
           "reproducible"),
      withOffHelp(flag("overlaps", &RunSpec::overlaps, Ranks, "overlap",
                       "Overlap collectives with steps that do not depend on them, for example the all-reduce of an "
                       "input gradient with the wgrad GEMM",
                       "O&verlap collectives with other steps"),
                  "Do not overlap collectives with other steps"),
      within(counted(valued("chunks", &RunSpec::chunks, Ranks, "chunks", "N|auto",
                            "Number of chunks in which rows are gathered or scattered during the GEMM that reads or "
                            "computes them; auto: by a model of GPUs, and 1 on the CPU",
                            "Chun&ks of collectives"),
                     "", "auto"),
             0, 64),
      valued("symbols", &RunSpec::symbols, Reading, "set", "SYMBOL=VALUE", "Value of a symbol, overriding the file"),
      valued("recipeFields", &RunSpec::recipeFields, Planning, "recipe-set", "KEY=VALUE",
             "Field of the recipe, as in --recipe-set margin=2"),
      valued("label", &RunSpec::label, Measuring, "label", "TEXT",
             "Name of the run, in its file, in the list of runs and in reports", "&Label"),
  };
}

}  // namespace

const std::vector<SpecField>& runSpecFields() {
  static const std::vector<SpecField> fields = makeFields();
  return fields;
}

}  // namespace fuseline
