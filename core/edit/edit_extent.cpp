// Edits inside a block may be of many ops of the graph.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/edit_extent.h"

namespace fuseline {

namespace {

template <class... Kinds>
bool isOneOf(const Edit& edit) {
  return (std::holds_alternative<Kinds>(edit) || ...);
}

void add(const Edit& edit, EditExtent& extent) {
  if (const auto* group = std::get_if<EditGroup>(&edit)) {
    for (const Edit& part : group->edits) add(part, extent);
  } else if (const auto* set = std::get_if<SetAttribute>(&edit)) {
    extent.attributesOf.insert(set->id);
  } else if (isOneOf<MoveNode, AddFrame, RemoveFrame, ReplaceFrame>(edit)) {
    extent.changesView = true;
  } else {
    extent.changesMore = true;
  }
}

}  // namespace

EditExtent extentOf(const std::vector<Edit>& edits) {
  EditExtent extent;
  for (const Edit& edit : edits) add(edit, extent);
  return extent;
}

}  // namespace fuseline
