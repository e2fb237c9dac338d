// Finds the classes by their names in the text.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/torch/torch_library.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::string_view kModules =
#include "core/export/torch_modules.inc"
    ;

/// Is there "= NAME(", or "(NAME):" behind a class?
bool isUsed(const std::string& text, std::string_view name) {
  const std::array forms = {fmt::format("= {}(", name), fmt::format("({}):", name)};
  return std::ranges::any_of(forms, [&](const std::string& form) { return text.find(form) != std::string::npos; });
}

}  // namespace

std::string usedTorchModules(const std::string& text) {
  constexpr std::string_view kClass = "class ";
  std::string used;
  for (std::size_t at = kModules.find(kClass); at != std::string_view::npos;) {
    const std::size_t next = kModules.find("\n\n\nclass ", at);
    const std::string_view whole =
        kModules.substr(at, next == std::string_view::npos ? std::string_view::npos : next + 1 - at);
    if (isUsed(text, whole.substr(kClass.size(), whole.find('(') - kClass.size())))
      used += fmt::format("{}\n\n", whole);
    at = next == std::string_view::npos ? next : next + 3;
  }
  return used;
}

}  // namespace fuseline
