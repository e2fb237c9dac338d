// Options of measuring to the settings of a run.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/measuring_options.h"

#include <charconv>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

Result<int> parseIterations(const std::string& text) {
  if (text == "auto") return 0;
  int rounds = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, rounds);
  if (problem == std::errc() && stop == end && rounds > 0) return rounds;
  return Error{
      fmt::format("--iterations {}: expected a number from 1 to {}, or auto.", text, std::numeric_limits<int>::max()),
      ErrorKind::Usage};
}

Result<void> checkDevice(const std::string& device) {
  if (!isPlannedArchitecture(device)) return {};
  return Error{fmt::format("{} is an architecture to plan for, not a device to run on. Use it with fuse, explain and "
                           "infer; `fuseline devices` lists what can run here.",
                           device),
               ErrorKind::NoDevice};
}

}  // namespace

CLI::Option* addSeedOption(CLI::App& verb, std::uint64_t& seed, const std::string& help) {
  // CLI11 takes -1 and what is too large for the largest number.
  const auto check = [](const std::string& text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    if (problem == std::errc() && stop == end) return std::string();
    return fmt::format("expected an integer from 0 to {}, found {}", std::numeric_limits<std::uint64_t>::max(), text);
  };
  return verb.add_option("--seed", seed, help)->check(CLI::Validator(check, ""))->capture_default_str();
}

void addMeasuringOptions(CLI::App& verb, MeasuringOptions& options) {
  verb.add_option("--iterations", options.iterations, "Rounds, or auto: until the ratio is known well")
      ->type_name("N|auto")
      ->capture_default_str();
  verb.add_option("--warmup", options.warmup,
                  "Runs before the first round; on a GPU for 100 ms at least, unless it is 0")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  addSeedOption(verb, options.seed, "Seed of what is drawn");
  verb.add_option(
          "--timing", options.timing,
          "What times steps: cupti (a GPU's kernels one by one), events (the device's own clock), host, auto, or none: "
          "whole runs only")
      ->capture_default_str();
  verb.add_flag_callback(
      "--no-replay", [&options] { options.replays = false; },
      "Launch step by step, also where the device could record the launches (CUDA graphs) and replay them");
  verb.add_flag("--cold", options.startsCold,
                "Fill the caches with other data before every run: what a plan reads first comes from memory");
}

void addRoofsOption(CLI::App& verb, MeasuringOptions& options) {
  if (options.measuresRoofs)
    verb.add_flag_callback(
        "--no-roofs", [&options] { options.measuresRoofs = false; },
        "Leave out what the device can do at best, which takes about a second after the rounds");
  else
    verb.add_flag("--roofs", options.measuresRoofs,
                  "Measure after the rounds what the device can do at best, in about a second");
}

Result<PipelineRunOptions> pipelineRunOptions(const MeasuringOptions& options) {
  if (Result<void> device = checkDevice(options.device); !device) return device.error();
  Result<RunSettings> settings = settingsOf(options);
  if (!settings) return settings.error();
  Result<int> iterations = parseIterations(options.iterations);
  if (!iterations) return iterations.error();
  settings->timing = options.timing;
  settings->replays = options.replays;
  settings->startsCold = options.startsCold;
  settings->measuresRoofs = options.measuresRoofs;
  settings->warmup = options.warmup;
  settings->iterations = *iterations;
  settings->seed = options.seed;
  return PipelineRunOptions{.settings = std::move(*settings), .switches = options.switches};
}

std::string pipelineNameOf(const PipelineOptions& options) {
  return std::filesystem::path(options.file).stem().string();
}

}  // namespace fuseline::cli
