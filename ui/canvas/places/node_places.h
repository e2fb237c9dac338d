// NodePlaces: where the nodes stand: as the document says, and automatically where it does not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/canvas_scope.h"
#include "ui/canvas/places/auto_layout.h"

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
  Position of(const std::string& id) const;
  /// Edits that store the automatic ones.
  std::vector<Edit> missing() const;
  /// isEdited: the document follows from the one before by edits.
  void sync(const Looks& looks, bool isStructureNew, bool isEdited);

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
