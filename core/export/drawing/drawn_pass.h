// One pass of a graph as boxes, wires and frames: what a drawing shows, before anything is placed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// An op, an instance of a block that is closed, or an end of the pipeline: an input or an output.
struct DrawnBox {
  NodeId node = -1;  // of an instance the first in it; -1: an end
  std::string name;
  std::string type;            // of an op: "BasicLinear"; of an instance its block; of an end empty
  std::string category;        // of an op
  std::string figure;          // a third line, such as a time; mostly empty
  std::string tip;             // what a pointer that rests on it is told, in lines
  std::string link;            // where a click leads: "#step-3"; empty: nowhere
  std::optional<double> heat;  // 0 to 1: its ground is coloured by it
  bool isInstance = false;
};

struct DrawnWire {
  int from = 0;
  int to = 0;
  std::string label;  // "[512, 1024] bf16"
  bool isMain = false;
};

enum class FrameKind { Forward, Backward, Joint, Block };

/// A fused op, or an instance of a block.
struct DrawnFrame {
  FrameKind kind = FrameKind::Block;
  std::string title;
  std::string figure;  // a second line; mostly empty
  std::string tip;
  std::vector<int> boxes;  // without those of inner frames
  int outer = -1;          // an earlier frame
};

struct DrawnPass {
  Phase phase = Phase::Forward;
  std::vector<DrawnBox> boxes;  // ops in the graph's order, then ends
  std::vector<DrawnWire> wires;
  std::vector<DrawnFrame> frames;
  std::vector<int> boxOfNode;  // -1: it takes no part in this pass

  /// The box of an op, or of the instance that it is drawn in; nullptr: it takes no part in this pass.
  DrawnBox* boxOf(NodeId node);
  const DrawnBox* boxOf(NodeId node) const;
};

/// Ops that run as one.
struct DrawnFusion {
  FrameKind kind = FrameKind::Forward;
  std::string title;
  std::string figure;  // a second line of the title; mostly empty
  std::vector<NodeId> nodes;
};

/// Of a pass of a report.
std::vector<DrawnFusion> fusionsOf(const Graph& graph, const std::vector<FusedOperation>& entries, Phase phase);

/// Every op that takes part in the pass, once, those of closedInstances() in the box of their instance; of a backward
/// without ops there is nothing. In backward gradients flow from the outputs to the inputs. Fusions have no op in
/// common. An instance of a block is framed unless a fusion reaches across its border; a fusion with an op in a closed
/// one is named in its tip instead.
DrawnPass drawnPass(const Graph& graph, const std::vector<DrawnFusion>& fusions, Phase phase);

}  // namespace fuseline
