// Multiplications and additions of nodes as polynomials, so that their order in a model does not matter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_reading.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace fuseline {

/// Coefficients by the powers of two tensors, x and f.
struct Polynomial {
  std::map<std::pair<int, int>, double> terms;
  double rounding = 0.0;  // relative, of the numbers it was computed from

  /// Does it have exactly these terms, within the rounding of its numbers?
  bool isAbout(const std::map<std::pair<int, int>, double>& expected) const;
};

/// A tensor as a polynomial of x and f. Nothing: it depends on other tensors, or on other operations than Add, Sub,
/// Mul, Neg, powers with a whole exponent and division by a number.
std::optional<Polynomial> polynomialOf(const OnnxReading& graph, const std::string& tensor, const std::string& x,
                                       const std::string& f = {});

}  // namespace fuseline
