// Options that are not the defaults, in the order of the program's help.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_command.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

bool isPlain(char letter) {
  constexpr std::string_view kPlain = "@%+=:,./-_";
  const bool isLetter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
  return isLetter || (letter >= '0' && letter <= '9') || kPlain.find(letter) != std::string_view::npos;
}

void addOption(std::string& command, std::string_view name, std::string_view value, std::string_view plain) {
  if (value != plain) command += fmt::format(" {} {}", name, shellWord(value));
}

/// Those that are not the defaults, a space before each.
std::string optionsOf(const RunSettings& settings, std::string_view tensors) {
  const RunSettings plain;
  std::string options;
  for (const auto& [name, value] : settings.symbols) options += fmt::format(" --set {}={}", name, value);
  addOption(options, "--pass", settings.pass, plain.pass);
  addOption(options, "--device", settings.device, plain.device);
  addOption(options, "--recipe", settings.recipe, plain.recipe);
  for (const auto& [name, value] : settings.recipeFields)
    options += " --recipe-set " + shellWord(fmt::format("{}={}", name, value));
  if (settings.emulates) options += " --emulate";
  addOption(options, "--rules", settings.rules, plain.rules);
  addOption(options, "--iterations", std::to_string(settings.iterations), std::to_string(plain.iterations));
  addOption(options, "--warmup", std::to_string(settings.warmup), std::to_string(plain.warmup));
  addOption(options, "--timing", settings.timing, plain.timing);
  if (!settings.replays) options += " --no-replay";
  if (settings.startsCold) options += " --cold";
  addOption(options, "--seed", std::to_string(settings.seed), std::to_string(plain.seed));
  addOption(options, "--tensors", tensors, {});
  return options;
}

}  // namespace

std::string shellWord(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, isPlain)) return std::string(text);
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

std::string runCommand(const RunSettings& settings, std::string_view file, std::string_view tensors) {
  return "fuseline run " + shellWord(file) + optionsOf(settings, tensors);
}

std::string repeatCommand(const RunSettings& settings, const RuleSwitches& switches, std::string_view file) {
  std::string command = runCommand(settings, file);
  for (const std::string& entry : switches.without) command += " --without " + shellWord(entry);
  for (const std::string& entry : switches.with) command += " --with " + shellWord(entry);
  return command;
}

std::string sweepCommand(const ShapeSweep& sweep, RunSettings settings, std::string_view file) {
  std::string command = "fuseline sweep " + shellWord(file);
  for (const SweepAxis& axis : sweep.axes) {
    command += " --over " + shellWord(fmt::format("{}={}", axis.symbol, sizesText(axis.sizes)));
    std::erase_if(settings.symbols, [&](const auto& set) { return set.first == axis.symbol; });
  }
  if (!sweep.recipes.empty()) {
    command += " --over " + shellWord(fmt::format("recipe={}", fmt::join(sweep.recipes, ",")));
    settings.recipe.clear();
  }
  return command + optionsOf(settings, {});
}

std::string nsysCommand(RunSettings settings, std::string_view file, std::string_view tensors) {
  settings.timing = "none";
  const std::string report = std::filesystem::path(file).stem().string();
  return fmt::format("nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --output={} {}", shellWord(report),
                     runCommand(settings, file, tensors));
}

}  // namespace fuseline
