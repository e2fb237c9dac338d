// RunGains: what the runs of one pipeline measured of its fusions, for as long as the pipeline does the same work.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/profile/run_record.h"

#include <string>

namespace fuseline::ui {

/// Switching fusions on and off leaves the work as it is: what runs measured of either choice is kept side by side.
class RunGains {
 public:
  /// Takes what a run measured, and forgets runs of other work. `runName` is what texts call the run. A run that tells
  /// nothing about fusions changes nothing.
  void take(const RunRecord& run, const std::string& runName);
  /// Measured gains that hold for this pipeline, for display only; neutral if the pipeline does other work than was
  /// measured. `settings` are what it is planned with.
  GainModel gainsFor(const PipelineDocument& document, RunSpec settings) const;

 private:
  bool isKnown() const { return m_measured.pipeline.is_object(); }

  RunRecord m_measured;  // its pipeline, settings and recipe only
  GainModel m_gains;
};

}  // namespace fuseline::ui
