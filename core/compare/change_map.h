// ChangeMap: positions in a drawing of a document that differ from another document. Independent of colors and
// coordinates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/document_difference.h"
#include "core/document/document.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace fuseline {

struct ChangeMap {
  /// An existing op, input or output, by its id: how it changed, and the index of the change. For an instance of a
  /// block that changed inside, the first change in the block.
  struct Mark {
    DocumentChange::Kind kind = DocumentChange::Kind::Changed;
    std::size_t change = 0;
    bool operator==(const Mark&) const = default;
  };
  std::map<std::string, Mark> marks;

  /// A removed node. `neighbour`: the nearest source, or else consumer, that still exists, by its id in the base and by
  /// its current id; empty: there is none.
  struct Ghost {
    std::string id;
    std::size_t change = 0;
    std::string baseNeighbour;
    std::string neighbour;
    bool operator==(const Ghost&) const = default;
  };
  std::vector<Ghost> ghosts;

  /// An end of a wire at a ghost, or at a node by its current id. For an output the port is empty.
  struct End {
    Endpoint at;
    bool isGhost = false;
    bool operator==(const End&) const = default;
  };
  struct Gone {
    End from;
    End to;
    bool operator==(const Gone&) const = default;
  };
  /// Wires, and links to outputs, that only the base has.
  std::vector<Gone> goneLinks;
  /// Those that only the other one has: from and to.
  std::vector<Wire> newLinks;
};

/// For the pipelines themselves, not the insides of blocks. `changes`: all changes between both documents.
ChangeMap changeMap(const PipelineDocument& base, const PipelineDocument& next,
                    const std::vector<DocumentChange>& changes);

}  // namespace fuseline
