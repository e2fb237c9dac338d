// Bounds of numbers in files: others are refused with their place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/field_table.h"

#include <string>
#include <utility>

namespace fuseline {

/// Beyond all that a run can measure or count: 30 years in ns, an exabyte.
inline constexpr double kMostAmount = 1e18;

/// Refuses a number, or one of a list, that is outside of these bounds.
void refuseOutside(JsonFields& fields, const std::string& key, const Json& found, double least, double most);

template <class T>
Field<T> between(Field<T> field, double least, double most) {
  field.read = [key = field.key, least, most, write = field.write, read = std::move(field.read)](JsonFields& fields,
                                                                                                 T& object) {
    read(fields, object);
    refuseOutside(fields, key, write(object), least, most);
  };
  return field;
}

/// A time, or a number of things.
template <class T>
Field<T> amount(Field<T> field) {
  return between(std::move(field), 0.0, kMostAmount);
}

}  // namespace fuseline
