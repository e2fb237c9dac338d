// EnumNames: the texts of an enum, for files, command lines and people. Inside the program an enum is an enum.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Specialized with `kNames`: a std::array of every value and its text, in the order in which they are listed.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = requires {
  EnumNames<E>::kNames;
};

template <NamedEnum E>
std::string nameOf(E value) {
  for (const auto& [each, name] : EnumNames<E>::kNames)
    if (each == value) return std::string(name);
  return {};
}

/// Empty: no value.
template <NamedEnum E>
std::string nameOf(const std::optional<E>& value) {
  return value ? nameOf(*value) : std::string();
}

template <NamedEnum E>
std::optional<E> enumNamed(std::string_view text) {
  for (const auto& [each, name] : EnumNames<E>::kNames)
    if (name == text) return each;
  return std::nullopt;
}

template <NamedEnum E>
std::vector<std::string> enumTexts() {
  std::vector<std::string> texts;
  for (const auto& [each, name] : EnumNames<E>::kNames) texts.emplace_back(name);
  return texts;
}

}  // namespace fuseline
