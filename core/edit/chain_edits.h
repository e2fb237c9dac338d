// Edits that put a chain of ops into a wire: one that is there, or one that is pasted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/fragments.h"
#include "core/edit/links.h"

#include <map>
#include <set>
#include <string>

namespace fuseline {

/// Where the first and the last op of a chain are to be wired.
struct ChainEnds {
  Endpoint input;
  Endpoint output;
};
/// Errors: the selection is not a chain. A chain has one unconnected main input, one unconnected main output, and
/// leads from the one to all of its ops.
Result<ChainEnds> chainEnds(const PipelineDocument& document, const std::set<std::string>& ids);

using Places = std::map<std::string, Position>;
/// Whether a chain keeps its positions, or is placed after the wire's source, where other nodes make room.
enum class Room { IsThere, IsMade };
/// Puts ops that are there into a wire; a single op is a chain, too. places: of all of them; those that the document
/// has not are left to the automatic layout. Errors: chainEnds(), the wire is one of the chain's own, or it would close
/// a cycle.
Result<Edit> spliceChain(const PipelineDocument& document, const std::set<std::string>& ids, const Link& link,
                         const Places& places, Room room);

/// Pastes a chain into a wire; others make room for it.
/// Errors: those of pasteFragment() and spliceChain(), and shape or dtype problems.
Result<FragmentEdit> pasteIntoWire(const PipelineDocument& document, std::string_view text, const Link& link);

}  // namespace fuseline
