// Fragments: pieces of a pipeline as text, as the clipboard holds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/support/result.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// The chosen ops and the wires among them, and the chosen frames, as text: a piece of the file format with "fragment":
/// true. "incoming" lists the wires from other nodes to these ops. Empty: none of them is there.
std::string copyFragment(const PipelineDocument& document, const std::set<std::string>& ids,
                         const std::vector<std::string>& frames = {});
/// Wires from nodes that were not copied: dropped, or connected to the same nodes where the document has them.
enum class IncomingWires { Dropped, Kept };
struct FragmentEdit {
  Edit edit;
  std::set<std::string> ids;
  std::vector<std::string> frames = {};
};
/// Pastes ops and frames with fresh ids, moved by `offset`. A whole pipeline brings inputs, outputs and new symbols,
/// too; it goes below what is there, and brings its recipe and its choice of fusions into an empty document. A block
/// that means something else than the one of its name gets a name that is free. Errors: the text holds neither ops nor
/// frames.
Result<FragmentEdit> pasteFragment(const PipelineDocument& document, std::string_view text, Position offset,
                                   IncomingWires incoming = IncomingWires::Dropped);

}  // namespace fuseline
