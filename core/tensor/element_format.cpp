// Names and limits of element formats.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/element_format.h"

#include <array>

namespace fuseline {

namespace {

struct FormatName {
  ElementFormat format;
  std::string_view name;
};
constexpr std::array kFormatNames = {FormatName{ElementFormat::E4M3, "e4m3"}, FormatName{ElementFormat::E5M2, "e5m2"},
                                     FormatName{ElementFormat::E2M1, "e2m1"}};

}  // namespace

std::string_view formatName(ElementFormat format) {
  for (const FormatName& known : kFormatNames)
    if (known.format == format) return known.name;
  return "?";
}

std::optional<ElementFormat> parseElementFormat(std::string_view name) {
  for (const FormatName& known : kFormatNames)
    if (known.name == name) return known.format;
  return std::nullopt;
}

float maxFinite(ElementFormat format) {
  return visitFormat(format, [](auto codec) { return decltype(codec)::toFloat(decltype(codec)::kMax); });
}

}  // namespace fuseline
