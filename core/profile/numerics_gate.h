// NumericsGate: what the number formats of a run must not have done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/numerics.h"
#include "core/support/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace fuseline {

/// "error>tolerance": fails where a result of the fused plan is further from the unfused plan's than its tolerance.
/// "error>0.5%": where the rms of the differences is above 0.5 % of that of the values. "float-error": of the unfused
/// plan against float32.
struct NumericsGate {
  std::string text;
  bool isAgainstFloat = false;
  std::optional<double> percent;  // nothing: the tolerance
};

/// Errors (Usage): what of the text was not expected, and what is.
Result<NumericsGate> parseNumericsGate(std::string_view text);

struct NumericsGateResult {
  NumericsGate gate;
  bool isMet = false;
  std::string sentence;  // with the result that is worst
};

/// NaN or infinity where the other side has a number fails every gate.
NumericsGateResult check(const NumericsGate& gate, const NumericsReport& report);

}  // namespace fuseline
