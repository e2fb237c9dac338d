// Looks at numbers after they were read.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/field_bounds.h"

#include <fmt/format.h>

namespace fuseline {

void refuseOutside(JsonFields& fields, const std::string& key, const Json& found, double least, double most) {
  const auto refuse = [&](const std::string& place, const Json& value) {
    if (!value.is_number() || (value.get<double>() >= least && value.get<double>() <= most)) return;
    fields.refuse(place, fmt::format("expected a number from {} to {}, found {}.", least, most, value.dump()));
  };
  if (!found.is_array()) return refuse(key, found);
  for (std::size_t i = 0; i < found.size(); ++i) refuse(fmt::format("{}/{}", key, i), found[i]);
}

}  // namespace fuseline
