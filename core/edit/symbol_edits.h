// A size that stands in a pipeline as a number becomes a symbol, so that it can be swept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <cstdint>
#include <optional>
#include <string>

namespace fuseline {

struct NewSymbol {
  Edit edit;
  std::string name;
  std::int64_t value = 0;
};
/// Gives the leading extent of the first input that is a number a name, "M" if that is free, in all inputs that begin
/// with the same number. Nothing: no input begins with a number.
std::optional<NewSymbol> leadingExtentAsSymbol(const PipelineDocument& document);

}  // namespace fuseline
