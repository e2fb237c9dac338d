// Repairs a document with the repairs that its own diagnostics offer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"

#include <string>
#include <vector>

namespace fuseline {

struct AppliedRepair {
  Diagnostic problem;
  std::string label;  // of the repair: "Set in_features to 1024"
};

struct RepairedDocument {
  PipelineDocument document;
  std::vector<AppliedRepair> applied;   // in order
  std::vector<Diagnostic> diagnostics;  // of the repaired document
};

/// Applies the first repair of the first error and analyzes again, until no error is left that has one. A repair whose
/// error remains, or comes back, is not tried twice. Warnings stay: their cause may be intended.
RepairedDocument repair(PipelineDocument document, const AnalysisOptions& options = {});

}  // namespace fuseline
