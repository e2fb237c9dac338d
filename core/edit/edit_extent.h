// EditExtent: what edits may change, so that whoever follows them looks only there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/edit.h"

#include <set>
#include <string>
#include <vector>

namespace fuseline {

struct EditExtent {
  /// Ops of the pipeline whose attributes are set.
  std::set<std::string> attributesOf;
  /// Nodes of the pipeline that are added, removed, set or wired otherwise. Complete unless changesOtherNodes is set,
  /// but for one kind: an output that is removed or replaced is named, and the op that fed it until then is not.
  std::set<std::string> nodes;
  std::set<std::string> movedNodes;
  /// Ids or blocks change: other nodes may be affected.
  bool changesOtherNodes = false;
  bool changesSwitches = false;  // of fusions, at any op
  bool changesView = false;
  /// Anything else: ops, wires, inputs, outputs, blocks, symbols, the recipe, switches.
  bool changesMore = false;

  bool isViewOnly() const { return attributesOf.empty() && !changesMore; }
  bool isAttributesOnly() const { return !attributesOf.empty() && !changesView && !changesMore; }
};

EditExtent extentOf(const std::vector<Edit>& edits);

}  // namespace fuseline
