// Ops that repeat in a row, such as the layers of a model, as instances of one block: one undoable edit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"

#include <map>
#include <optional>
#include <string>

namespace fuseline {

struct FoldedRepeats {
  Edit edit;
  std::string block;
  int numInstances = 0;
  /// Where the ops are now that went inside, by id: "fc7" is "layer2.fc".
  std::map<std::string, std::string> places;
};

/// The row that takes in the most ops, of units of kFewestRepeatedOps ops or more that are the same, in themselves and
/// in how they are wired, in the order in which they run. A unit begins where the fewest tensors go in and out. `name`
/// is that of the block; it gets a number where it is taken. Nothing: no ops repeat so, or only such that switches of
/// fusions or parts of the recipe name one by one.
std::optional<FoldedRepeats> foldRepeats(const PipelineDocument& document, const std::string& name = "Layer");

inline constexpr std::size_t kFewestRepeatedOps = 3;

}  // namespace fuseline
