// Effect of a recipe on the linear layers of a pipeline: a recipe that quantizes none of them was not measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <cstdint>
#include <string>

namespace fuseline {

struct QuantizedLinears {
  std::int64_t total = 0;
  std::int64_t quantized = 0;
  std::string reason;  // why not all layers are quantized; empty: all are, or the recipe is None

  /// "1/3", for tables.
  std::string share() const;
};

QuantizedLinears quantizedLinears(const Analysis& analysis);

/// Does the recipe quantize anything? Also yes for a recipe without quantization. The verdict has the reason.
Verdict quantizesAnything(const Analysis& analysis);
/// The same before weights of some GiB are drawn for a recipe that does nothing with them. Errors: also those of
/// analysisOptions().
Result<void> checkQuantizes(const PipelineDocument& document, const RunSpec& settings);

}  // namespace fuseline
