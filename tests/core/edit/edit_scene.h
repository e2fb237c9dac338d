// A small pipeline with a history, for tests of composed edits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/file_format.h"
#include "core/edit/history.h"
#include "core/edit/view_grid.h"
#include "core/lowering/lowering.h"
#include "tests/support/small_pipelines.h"

#include <algorithm>
#include <string>

namespace fuseline::testing {

struct EditScene {
  History history{parseDocument(smallPipeline()).document};
  LoweredGraph lowered = lower(history.document());
  const PipelineDocument& document() const { return history.document(); }
  const Graph& graph() const { return lowered.graph; }
};

/// Applies, and checks that undo gives back the same bytes.
inline bool appliesAndUndoes(History& history, const Edit& edit) {
  const std::string before = serialize(history.document());
  if (!history.apply(edit)) return false;
  history.undo();
  const bool isBack = serialize(history.document()) == before;
  history.redo();
  return isBack;
}

/// The small pipeline in a row, and below it id (Identity) -> silu (SiLU), which nothing else is wired to.
struct EditSceneWithChain : EditScene {
  EditSceneWithChain() {
    int x = 0;
    for (const char* id : {"x", "norm", "fc", "act", "y"})
      (void)history.apply(MoveNode{.id = id, .position = Position{kNodePitchPx * x++, 0}});
    (void)history.apply(AddOp{.op = {.id = "id", .operation = "Identity"}});
    (void)history.apply(AddOp{.op = {.id = "silu", .operation = "SiLU"}});
    (void)history.apply(AddWire{{{"id", "y"}, {"silu", "x"}}});
  }
  Position at(const std::string& id) const {
    const auto& all = document().positions();
    return std::ranges::find(all, id, [](const auto& entry) { return entry.first; })->second;
  }
};

}  // namespace fuseline::testing
