// OpenBlocks: instances of blocks that are open in place on the canvas, and the room that the nodes around them make.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/blocks/block_inside.h"
#include "ui/canvas/blocks/stretch.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace fuseline::ui {

/// A state of the view: the document does not know it. Nodes to the right of an open block, or below it, move away as
/// far as the block has grown.
class OpenBlocks {
 public:
  using Insides = std::map<std::string, std::shared_ptr<const BlockInside>>;  // by the id of the instance

  /// place: "layer1.mlp", the instance in the whole pipeline.
  bool isOpen(const std::string& place) const { return m_places.contains(place); }
  void toggle(const std::string& place);
  void forget() { m_places.clear(); }
  bool isEmpty() const { return m_places.empty(); }

  /// document: with all blocks closed, places: of its nodes. insides: of those that are open in it.
  void follow(const PipelineDocument& document, const std::vector<NodeLook>& looks, const NodePositions& places,
              Insides insides);
  /// nullptr: the block is closed.
  std::shared_ptr<const BlockInside> inside(const std::string& id) const;
  /// The document with room for what is open; nullptr: nothing of it is.
  const PipelineDocument* shown() const { return m_shown ? &*m_shown : nullptr; }
  /// An edit of what is shown as one of the document: its places are without the room.
  Edit inDocument(const Edit& edit) const;

 private:
  Position shownAt(const Position& place) const { return {m_across.shown(place.x), m_down.shown(place.y)}; }
  FrameArea shownArea(const FrameArea& area) const;
  FrameArea areaOf(const FrameArea& shown) const;

  std::set<std::string> m_places;
  Insides m_insides;
  Stretch m_across;
  Stretch m_down;
  std::optional<PipelineDocument> m_shown;
};

}  // namespace fuseline::ui
