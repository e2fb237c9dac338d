// Options that are not the defaults, in the order of the program's help.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_command.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

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

}  // namespace

std::string shellWord(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, isPlain)) return std::string(text);
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

std::string runCommand(const RunSettings& settings, std::string_view file, std::string_view tensors) {
  const RunSettings plain;
  std::string command = "fuseline run " + shellWord(file);
  for (const auto& [name, value] : settings.symbols) command += fmt::format(" --set {}={}", name, value);
  addOption(command, "--pass", settings.pass, plain.pass);
  addOption(command, "--device", settings.device, plain.device);
  addOption(command, "--recipe", settings.recipe, plain.recipe);
  for (const auto& [name, value] : settings.recipeFields)
    command += " --recipe-set " + shellWord(fmt::format("{}={}", name, value));
  addOption(command, "--rules", settings.rules, plain.rules);
  addOption(command, "--timing", settings.timing, plain.timing);
  addOption(command, "--seed", std::to_string(settings.seed), std::to_string(plain.seed));
  addOption(command, "--tensors", tensors, {});
  return command;
}

std::string nsysCommand(RunSettings settings, std::string_view file, std::string_view tensors) {
  settings.timing = "none";
  const std::string report = std::filesystem::path(file).stem().string();
  return fmt::format("nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --output={} {}", shellWord(report),
                     runCommand(settings, file, tensors));
}

}  // namespace fuseline
