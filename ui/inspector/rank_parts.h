// RankParts: what one of several ranks holds of a tensor, and the collectives that move it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/links.h"
#include "core/plan/analysis.h"
#include "core/runtime/planned_collectives.h"

#include <QString>

#include <optional>
#include <vector>

namespace fuseline::ui {

/// The part of a tensor that one rank holds. The default is that of one rank alone.
struct RankPart {
  Shard shard;
  int ranks = 1;

  bool isSlicedAt(int axis) const { return shard.isSlice() && shard.axis == axis; }
  bool operator==(const RankPart&) const = default;
};

/// "512×4096/2": the extents of one rank, and for the sharded axis that of all ranks over their number, so that the
/// axis and the whole size are seen. "512×4096 partial": ranks hold summands. local: the shape on one rank.
QString partShape(const Shape& local, const RankPart& part, const QString& separator);
/// "sharded along axis 1 of [512, 4096]", "replicated", "partial: the tensor is the sum over 2 ranks"; empty: one rank.
QString placementText(const Shape& local, const RankPart& part);

/// A wire on several ranks.
struct WireCommunication {
  bool isAtEnd = false;  // the consumer gathers or sums; false: the producer does
  QString collective;    // "all-gather"; "all-reduce in backward"
  QString tip;           // with the bytes of each pass

  bool operator==(const WireCommunication&) const = default;
};

class RankParts {
 public:
  /// The analysis outlives this.
  explicit RankParts(const Analysis& analysis);

  RankPart of(const Value& value) const;
  RankPart ofParameter(const std::string& name) const;
  /// Collectives between the ports of a wire, whose tensor is `value`: those of ops, and those that tensor-parallel
  /// linear layers imply.
  std::vector<WireCommunication> along(const Link& link, const Value& value) const;
  /// "all-gather forward, 1.5 MiB sent by each rank", a line for each step of an op; empty: it does not communicate.
  QString communicationOf(const std::string& op) const;

 private:
  RankPart named(const std::string& name) const;
  WireCommunication communicationAt(const Node& node, bool isAtEnd) const;

  const Analysis& m_analysis;
  std::vector<PlannedCollective> m_collectives;
};

}  // namespace fuseline::ui
