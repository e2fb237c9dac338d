// ChangeMap: marks for the differences of a document in its picture, without colors and positions.
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
  /// An existing op, input or output, by its id: its kind of change, and the index of the change. For an instance of a
  /// block that changed inside, the first change in there.
  struct Mark {
    DocumentChange::Kind kind = DocumentChange::Kind::Changed;
    std::size_t change = 0;
    bool operator==(const Mark&) const = default;
  };
  std::map<std::string, Mark> marks;

  /// One that is gone. `neighbour`: the nearest that it read from, or else that read it, and that is still there, as
  /// the base calls it and as it is called now; empty: there is none.
  struct Ghost {
    std::string id;
    std::size_t change = 0;
    std::string baseNeighbour;
    std::string neighbour;
    bool operator==(const Ghost&) const = default;
  };
  std::vector<Ghost> ghosts;

  /// An end of a wire at a ghost, or at a node as it is called now. Of an output the port is empty.
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

/// Map of the top level of the pipelines, without the insides of blocks. `changes`: all of both documents.
ChangeMap changeMap(const PipelineDocument& base, const PipelineDocument& next,
                    const std::vector<DocumentChange>& changes);

}  // namespace fuseline
