// Which elements of a whole tensor a dropout works on, where its tensor is a rank's share of the rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline {

/// Attribute of Dropout in the graph of one rank: index of its first element in the whole tensor.
inline constexpr const char* kFirstElementAttribute = "first_element";

}  // namespace fuseline
