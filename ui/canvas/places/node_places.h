// NodePlaces: where the nodes stand: as the document says, and automatically where it does not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_scope.h"
#include "ui/canvas/places/auto_layout.h"
#include "ui/canvas/places/few_ids.h"

#include <QStringList>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::ui {

class NodePlaces {
 public:
  using Looks = std::vector<const NodeLook*>;

  explicit NodePlaces(const CanvasScope& scope) : m_scope(scope) {}

  const std::map<std::string, Position>& all() const { return m_positions; }
  /// Those of nodes without a place in the document, as long as they hold for what is shown.
  NodePositions automatic() const { return m_automaticIn == m_scope.path() ? m_automatic : NodePositions(); }
  Position of(const std::string& id) const;
  /// Edits that store the automatic ones.
  std::vector<Edit> missing() const;
  /// isEdited: the document follows from the one before by edits.
  void sync(const Looks& looks, bool isStructureNew, bool isEdited);
  /// The same after an edit that changes these nodes alone, of which those with a look are there now. False: others
  /// move, too, or one of these has no place; then nothing is changed.
  bool follow(const FewIds& nodes, const std::vector<NodeLook>& looks);

 private:
  bool keepsAutomatic(const Looks& looks) const;
  void layOut(const Looks& looks);
  void forgetAutomatic();

  const CanvasScope& m_scope;
  std::map<std::string, Position> m_positions;
  std::vector<std::pair<std::string, Position>> m_given;  // those of the document
  NodePositions m_automatic;
  std::string m_automaticFor;  // the structure that m_automatic was made for
  QStringList m_automaticIn;   // the same: the path in the document
};

}  // namespace fuseline::ui
