// The JSON Schemas of a fusion report and of its attempts. report_text.cpp writes both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

namespace fuseline {

Json fusionSchema();
Json attemptSchema();

}  // namespace fuseline
