// NumericsGate: limits on the effects of a run's number formats.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/numerics.h"
#include "core/support/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace fuseline {

/// "error>tolerance": fails if a result of the fused plan differs from the unfused plan's by more than its tolerance.
/// "error>0.5%": fails if the rms of the differences exceeds 0.5 % of the rms of the values. "float-error": compares
/// the unfused plan with float32.
struct NumericsGate {
  std::string text;
  bool isAgainstFloat = false;
  std::optional<double> percent;  // nothing: the tolerance
};

/// Errors (Usage): the unexpected part of the text, and the valid values.
Result<NumericsGate> parseNumericsGate(std::string_view text);

struct NumericsGateResult {
  NumericsGate gate;
  bool isMet = false;
  std::string sentence;  // with the result that is worst
};

/// NaN fails every gate, as does infinity where the other side has a number.
NumericsGateResult check(const NumericsGate& gate, const NumericsReport& report);

}  // namespace fuseline
