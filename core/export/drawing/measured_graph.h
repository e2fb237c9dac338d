// The graph of a run: its pipeline, divided into the steps of its own plan, with their times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/drawn_pass.h"
#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <array>
#include <set>
#include <string>
#include <vector>

namespace fuseline {

/// Shows the fused plan, or the unfused one if only that was measured. The record must outlive it.
class MeasuredGraph {
 public:
  /// Errors: a sentence: nothing was measured, the pipeline cannot be used or is too large, or this version reads ops
  /// from it that are not those of the steps.
  static Result<MeasuredGraph> of(const RunRecord& record);

  /// With times as figures and shades. An op, or a closed instance of a block, is as hot as the steps that run it take
  /// in their medians.
  std::vector<DrawnPass> passes() const;

  const Graph& graph() const { return m_graph; }
  /// For a step that only quantizes, the op that it quantizes for; nothing if that is not known.
  std::vector<NodeId> nodesOf(const StepRecord& step) const;

  const std::string& variant() const { return m_variant->name; }
  /// Whether there is a time at all.
  bool isTimed() const { return m_hottestNs > 0.0; }
  double sumNs() const { return m_sumNs; }
  /// Total time of steps that only quantize, which have no box.
  double quantizingNs() const { return m_quantizingNs; }
  /// Total time of the optimizer's steps, which have none either.
  double optimizerNs() const { return m_optimizerNs; }
  /// Time of the hottest op, at the end of the scale: "1.14 ms (42 %)".
  std::string hottest() const;
  /// "42 %": a time's share of the sum.
  std::string shareText(double ns) const;

 private:
  MeasuredGraph(const VariantRecord& variant, Graph graph);
  std::vector<DrawnFusion> fusions(Phase phase) const;
  DrawnPass passOf(Phase phase) const;
  void addTimes(const StepRecord& step, DrawnPass& pass) const;
  std::string figureOf(double ns) const;
  std::string tipOf(const StepRecord& step) const;
  /// The nodes of the drawing that show the step's ops, each once.
  std::set<NodeId> shownOf(const StepRecord& step) const;
  bool isJoint(const StepRecord& step) const;
  double& opNs(Phase phase, NodeId node);

  const VariantRecord* m_variant;
  Graph m_graph;
  std::vector<NodeId> m_shownAs;              // by node: itself, or the first node of its closed instance
  std::array<std::vector<double>, 3> m_opNs;  // by pass and displayed node
  double m_sumNs = 0.0;
  double m_quantizingNs = 0.0;
  double m_optimizerNs = 0.0;
  double m_hottestNs = 0.0;
};

}  // namespace fuseline
