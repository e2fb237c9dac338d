// The formats of quantized elements and their names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/minifloat.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace fuseline {

enum class ElementFormat : std::uint8_t { E4M3, E5M2, E2M1 };

/// "e4m3", "e5m2", "e2m1".
std::string_view formatName(ElementFormat format);
std::optional<ElementFormat> parseElementFormat(std::string_view name);

/// The largest finite value: 448, 57344, 6.
float maxFinite(ElementFormat format);

/// Two E2M1 share a byte, the even element in its lower half; the others take a byte each.
constexpr std::int64_t codeBytes(ElementFormat format, std::int64_t numElements) {
  return format == ElementFormat::E2M1 ? (numElements + 1) / 2 : numElements;
}

/// visit(E4m3()), visit(E5m2()) or visit(E2m1()).
template <class Visit>
decltype(auto) visitFormat(ElementFormat format, Visit visit) {
  switch (format) {
    case ElementFormat::E5M2: return visit(E5m2());
    case ElementFormat::E2M1: return visit(E2m1());
    case ElementFormat::E4M3: break;
  }
  return visit(E4m3());
}

}  // namespace fuseline
