// Arrangements of several nodes: aligned, or evenly spaced.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/edit.h"

#include <QRect>

#include <map>
#include <string>
#include <vector>

namespace fuseline::ui {

enum class Arrangement { Left, Centre, Right, Top, Middle, Bottom, Straight, SpaceAcross, SpaceDown };

/// By node, in scene coordinates.
using NodeBoxes = std::map<std::string, QRect>;

/// Computes the new node positions. Aligned nodes go to the outermost one, or to the middle of all,
/// and straight ones to the line of the leftmost, which straightens the wires between their main ports; spaced nodes
/// keep the first and the last where they are and get gaps of one size between them, which may be negative. On the
/// grid.
std::vector<MoveNode> arrange(const NodeBoxes& boxes, Arrangement arrangement);

}  // namespace fuseline::ui
