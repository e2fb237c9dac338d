// The equation of an Einsum node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// A letter an axis; '.' stands for the axes of "...".
struct EinsumTerms {
  std::vector<std::string> inputs;
  std::string output;
};

/// The terms of an equation such as "bij,bjk->bik". Without an arrow the output has the axes of "...", then each letter
/// that occurs once, in alphabetical order. Nothing: it is no equation.
std::optional<EinsumTerms> einsumTerms(std::string equation);

}  // namespace fuseline
