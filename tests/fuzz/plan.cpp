// Plans of `fuseline fuse --format json`, as --expect reads them.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/plan_difference.h"
#include "core/support/json_fields.h"
#include "tests/fuzz/fuzz.h"

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<Json> json = parseJson(fuzz::textOf(data, size));
  if (!json) return 0;
  if (const auto same = planDifference(*json, *json)) fuzz::expect(same->empty());
  if (const auto other = planDifference(*json, Json::object({{"forward", Json::array()}, {"backward", Json::array()}})))
    (void)toString(*other);
  return 0;
}
