// Orders in which files store the elements of a weight, and names with numbers in them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fuseline {

/// The pattern with a number in place of the mark, if it has one.
std::string withNumber(const std::string& pattern, std::string_view mark, std::size_t number);

/// [.., cols, rows] for [.., rows, cols]. Precondition: two axes or more.
Tensor transposed(const Tensor& from);

/// [E, 2 F, ..] with all even rows of an expert before all odd ones. Precondition: two axes or more, 2 F even.
Tensor withPairsApart(const Tensor& from);
/// The inverse.
Tensor withPairsBeside(const Tensor& from);

/// Rows of [heads, 3, D] as [3, heads, D]. Precondition: there are heads * 3 * D rows.
Tensor withHeadsTogether(const Tensor& from, std::int64_t heads);
/// The inverse.
Tensor withHeadsApart(const Tensor& from, std::int64_t heads);

/// Rows [first, first + count) of the first axis.
Tensor rowsOf(const Tensor& from, std::int64_t first, std::int64_t count);

}  // namespace fuseline
