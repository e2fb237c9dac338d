// One pass of a graph as boxes, wires and frames: the content of a drawing, before its layout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// An op, an instance of a block that is closed, or an end of the pipeline: an input or an output.
struct DrawnBox {
  NodeId node = -1;  // for an instance the first node in it; -1: an end
  std::string name;
  std::string type;            // of an op: "BasicLinear"; of an instance its block; of an end empty
  std::string category;        // of an op
  std::string figure;          // a third line, such as a time; usually empty
  std::string tip;             // text of the tooltip, in lines
  std::string link;            // target of a click: "#step-3"; empty: none
  std::optional<double> heat;  // 0 to 1: determines the background color
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
  std::string figure;  // a second line; usually empty
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

/// Ops that are fused.
struct DrawnFusion {
  FrameKind kind = FrameKind::Forward;
  std::string title;
  std::string figure;  // a second line of the title; usually empty
  std::vector<NodeId> nodes;
};

/// Fusions in a pass of a report.
std::vector<DrawnFusion> fusionsOf(const Graph& graph, const std::vector<FusedOperation>& entries, Phase phase);

/// Every op that takes part in the pass, once, ops of closedInstances() in the box of their instance; nothing for a
/// backward pass without ops. In backward, gradients flow from the outputs to the inputs. Fusions do not share ops. An
/// instance of a block is framed unless a fusion crosses its border; a fusion with an op in a closed instance is named
/// in that instance's tooltip instead.
DrawnPass drawnPass(const Graph& graph, const std::vector<DrawnFusion>& fusions, Phase phase);

}  // namespace fuseline
