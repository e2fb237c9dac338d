// Statistics in JSON output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/stats.h"
#include "core/support/json.h"
#include "core/support/output_schema.h"

namespace fuseline {

/// {"median": 1.25, "low": 1.24, "high": 1.27}
inline Json ratioJson(const RatioStats& ratio) {
  return {{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}};
}

/// Within rounds.
inline Json ratioSchema() {
  return schema::object({{"median", schema::number("Median of the ratio, per round.")},
                         {"low", schema::number("Lower bound of the 95 % interval.")},
                         {"high", schema::number("Upper bound of the 95 % interval.")}});
}

}  // namespace fuseline
