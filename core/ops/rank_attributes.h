// Attributes of ops in the graph of one rank, where random numbers depend on the rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline {

/// Attribute of a Dropout on a rank's share of the rows: index of its first element in the whole tensor.
inline constexpr const char* kFirstElementAttribute = "first_element";
/// Attribute of a linear op: the rank, so that ranks round stochastically by different random numbers.
inline constexpr const char* kRankAttribute = "rank";

}  // namespace fuseline
