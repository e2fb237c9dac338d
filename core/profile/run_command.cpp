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

/// The group's options that are not the defaults, a space before each.
std::string optionsOf(const RunSpec& spec, SpecGroup group) {
  const RunSpec plain;
  std::string options;
  for (const SpecField& field : runSpecFields()) {
    if (field.group != group || textsOf(field, spec) == textsOf(field, plain)) continue;
    const std::string name = " " + optionName(field, plain);
    if (field.isFlag())
      options += name;
    else
      for (const std::string& text : textsOf(field, spec)) options += name + " " + shellWord(text);
  }
  return options;
}

/// In the order of the program's help.
std::string optionsOf(const RunSpec& spec, std::string_view tensors) {
  std::string options;
  for (const SpecGroup group : {SpecGroup::Reading, SpecGroup::Planning, SpecGroup::Measuring, SpecGroup::Ranks})
    options += optionsOf(spec, group);
  return tensors.empty() ? options : options + " --tensors " + shellWord(tensors);
}

}  // namespace

std::string shellWord(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, isPlain)) return std::string(text);
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

std::string runCommand(const RunSpec& settings, std::string_view file, std::string_view tensors) {
  return "fuseline run " + shellWord(file) + optionsOf(settings, tensors);
}

std::string repeatCommand(const RunSpec& settings, const RuleSwitches& switches, std::string_view file) {
  std::string command = runCommand(settings, file);
  for (const std::string& entry : switches.without) command += " --without " + shellWord(entry);
  for (const std::string& entry : switches.with) command += " --with " + shellWord(entry);
  return command;
}

std::string sweepCommand(const ShapeSweep& sweep, RunSpec settings, std::string_view file) {
  std::string command = "fuseline sweep " + shellWord(file);
  for (const SweepAxis& axis : sweep.axes) {
    command += " --over " + shellWord(fmt::format("{}={}", axis.symbol, sizesText(axis.sizes)));
    std::erase_if(settings.symbols, [&](const auto& set) { return set.first == axis.symbol; });
  }
  if (!sweep.recipes.empty()) {
    command += " --over " + shellWord(fmt::format("recipe={}", fmt::join(sweep.recipes, ",")));
    settings.recipe.clear();
  }
  return command + optionsOf(settings, std::string_view());
}

std::string nsysCommand(RunSpec settings, std::string_view file, std::string_view tensors) {
  settings.timing = StepTiming::None;
  const std::string report = std::filesystem::path(file).stem().string();
  return fmt::format("nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --output={} {}", shellWord(report),
                     runCommand(settings, file, tensors));
}

}  // namespace fuseline
