// NodeLook: what the canvas shows of one node, computed from the document and its last analysis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/plan/analysis.h"
#include "ui/theme/theme.h"
#include "ui/timings/node_status.h"

#include <QSizeF>
#include <QString>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fuseline::ui {

struct BlockInside;

enum class NodeKind { Op, Input, Output };

struct PortLook {
  std::string name;
  QString tip;
  /// Dtype of its tensor; nullopt if unknown.
  std::optional<DType> dtype;
  /// Extra ports show their name; the main one is where everybody expects it.
  bool isNamed = false;
  bool operator==(const PortLook&) const = default;
};

/// One pass of an op in the overlay. text: empty where the time is that of several ops; each of them has their change.
struct HeatHalf {
  double heat = 0.0;  // 0 to 1; of a change -1 to 1
  bool isChange = false;
  QString text;
  QColor color() const { return isChange ? divergingColor(heat) : heatColor(heat); }
  bool operator==(const HeatHalf&) const = default;
};

struct NodeLook {
  std::string id;
  NodeKind kind = NodeKind::Op;
  QString title;
  QString subtitle;
  std::string category;
  /// For a known op only its problems; the scene appends them to the op's card.
  QString tip;
  /// Text of the problem badge: nothing but the problems.
  QString problems;
  std::vector<PortLook> inputs;
  std::vector<PortLook> outputs;
  bool isUnknown = false;
  bool isBypassed = false;
  /// It stands for what Fuseline has no kernel for.
  bool isNotRun = false;
  std::optional<Severity> worst;
  /// The worst rms error of what the op makes, where it is shown.
  std::optional<double> rmsError;
  /// Figures of the two passes in the overlay.
  std::optional<HeatHalf> forwardHeat;
  std::optional<HeatHalf> backwardHeat;
  /// Run status of an op, if it is shown.
  std::optional<NodeStatus> status;
  /// An instance of a block; it can be opened in place.
  bool isBlock = false;
  /// The ops and wires of a block that is open in place; nullptr: the block is closed.
  std::shared_ptr<const BlockInside> inside = {};
  bool operator==(const NodeLook&) const = default;

  bool hasHeat() const { return forwardHeat || backwardHeat; }
  bool isHatched() const { return isUnknown || isNotRun; }
  QSizeF size() const;
};

std::vector<NodeLook> nodeLooks(const PipelineDocument& document, const Analysis& analysis,
                                const std::vector<Diagnostic>& fileProblems);

/// The same for these nodes alone, in time that hardly grows with the document.
std::vector<NodeLook> looksOf(const std::set<std::string>& nodes, const PipelineDocument& document,
                              const Analysis& analysis, const std::vector<Diagnostic>& fileProblems);

}  // namespace fuseline::ui
