// Places of ops in the recipe's overrides and among the switches of fusions, where ops get other places. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Where a place is now, of an op, a part of one, or what is inside an instance; nullopt: where it was.
using MovedPlace = std::function<std::optional<std::string>(const std::string& place)>;

/// Adds the edits that let the recipe and the switches follow.
void addMovedPlaces(std::vector<Edit>& edits, const PipelineDocument& document, const MovedPlace& moved);

}  // namespace fuseline
