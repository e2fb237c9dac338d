// Sequence parallelism, where several ranks repeat the work between their layers.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/sources.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kMode = "tensor_parallel_mode";
constexpr const char* kSequenceParallel = "sequence_parallel";

bool isParallel(const DocumentOp& op) {
  const auto mode = op.attributes.find(kMode);
  return mode != op.attributes.end() && (*mode == Json("column") || *mode == Json("row"));
}

bool isSequenceParallel(const DocumentOp& op) {
  const auto found = op.attributes.find(kSequenceParallel);
  return found != op.attributes.end() && *found == Json(true);
}

}  // namespace

/// All layers at once: two that share a tensor need it alike.
std::vector<Proposal> suggestion_sources::sequence_parallel(const SuggestionContext& context) {
  if (context.analysis.ranks == 1) return {};
  EditGroup group{.label = "Enable sequence_parallel on all tensor-parallel layers"};
  for (const DocumentOp& op : context.document.ops())
    if (isParallel(op) && !isSequenceParallel(op))
      group.edits.emplace_back(SetAttribute{.id = op.id, .name = kSequenceParallel, .value = true});
  if (group.edits.empty()) return {};
  std::string label = group.label;
  return {{.source = "sequence_parallel",
           .kind = SuggestionKind::ChangesBehavior,
           .repair = {std::move(label), std::move(group)},
           .caution = fmt::format(
               "Between the layers, each of {} ranks then holds a slice of the rows, and the caller passes only "
               "this slice. A reduce-scatter and an all-gather together send as many bytes as the all-reduce.",
               context.analysis.ranks)}};
}

}  // namespace fuseline
