// IncrementalAnalysis: analyzes a document after each edit, and keeps the plan where the edit leaves it as it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace fuseline {

/// One thread at a time.
class IncrementalAnalysis {
 public:
  /// Equal to analyze(document, options). settings: as long as it is the same number, `options` differ in their
  /// measured gains at most. An edit of the view (positions, frames) gives the analysis that was given before. After an
  /// edit of attributes the chains around these ops are fused and planned again, and the rest if their plan changes.
  std::shared_ptr<const Analysis> next(PipelineDocument document, const AnalysisOptions& options,
                                       std::uint64_t settings);

  /// Number of calls in which the whole graph was fused and planned.
  int numComplete() const { return m_numComplete; }

 private:
  bool isFor(const AnalysisOptions& options, std::uint64_t settings) const;

  PipelineDocument m_document;
  GainModel m_gains;
  std::uint64_t m_settings = 0;
  std::shared_ptr<const Analysis> m_last;  // of m_document; nullptr: none yet
  int m_numComplete = 0;
};

}  // namespace fuseline
