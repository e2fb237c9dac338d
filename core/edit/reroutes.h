// Reroute points: places that a wire passes through. They are layout, kept among the positions of nodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/links.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// id: its key among the positions, "norm.y > fc.x" for the first point of this wire, then "norm.y > fc.x #2".
struct Reroute {
  std::string id;
  Position position;
};

/// The part of the key that all points of a wire share. No node bears such an id, because it holds spaces.
std::string rerouteKey(const Link& link);
/// By rerouteKey(); those of one wire in the order in which it passes through them, which is that of the file.
std::map<std::string, std::vector<Reroute>> reroutesOf(const DocumentBlock& block);

/// Adds a point to a wire, before its point with this number.
Edit addReroute(const DocumentBlock& block, const Link& link, Position position, std::size_t before);
/// Edits that remove all points of a wire.
std::vector<Edit> removeReroutes(const DocumentBlock& block, const Link& link);

/// Is the node an end of the wire that this position is a point of?
bool isRerouteAt(std::string_view id, std::string_view node);
/// The id of the same point once the node has another name; other ids stay.
std::string rerouteAfterRenaming(std::string_view id, std::string_view node, std::string_view newName);

}  // namespace fuseline
