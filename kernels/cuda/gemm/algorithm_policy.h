// Environment settings: whether algorithms are chosen by timing, and where the choices are kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/user_folders.h"

#include <filesystem>
#include <string>

namespace fuseline::cuda {

struct AlgorithmPolicy {
  /// Not timed: the library's own first choice, independent of kept choices.
  bool isTimed = true;
  std::filesystem::path folder;  // empty: kept in the process only
  /// Factors in float32 are rounded to TF32 first, as TransformerEngine's are.
  bool usesTf32 = false;
};

/// FUSELINE_TUNE=off turns timing off.
AlgorithmPolicy algorithmPolicy(const Environment& environment);

/// For run files.
std::string describe(const AlgorithmPolicy& policy);

}  // namespace fuseline::cuda
