// Reads from the last node to x and f.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_polynomial.h"

#include <algorithm>
#include <cmath>

namespace fuseline {

namespace {

constexpr int kDeepest = 12;
constexpr int kHighestDegree = 4;

class PolynomialReading {
 public:
  PolynomialReading(const OnnxReading& graph, const std::string& x, const std::string& f)
      : m_graph(graph), m_x(graph.source(x)), m_f(graph.source(f)) {}

  std::optional<Polynomial> at(const std::string& tensor, int depth = 0) const {
    const std::string& source = m_graph.source(tensor);
    if (source == m_x) return Polynomial{{{{1, 0}, 1.0}}};
    if (source == m_f) return Polynomial{{{{0, 1}, 1.0}}};
    if (const auto number = m_graph.number(tensor)) return Polynomial{{{{0, 0}, *number}}, m_graph.roundingOf(tensor)};
    const ::onnx::NodeProto* const node = m_graph.maker(tensor);
    return node && depth < kDeepest ? ofNode(*node, tensor, depth + 1) : std::nullopt;
  }

 private:
  std::optional<Polynomial> ofNode(const ::onnx::NodeProto& node, const std::string& tensor, int depth) const {
    const auto is = [&](const char* type) { return m_graph.makerOf(type, tensor) != nullptr; };
    if (is("Pow")) return power(node, depth);
    if (is("Div")) return quotient(node, depth);
    if (!is("Neg") && !is("Add") && !is("Sub") && !is("Mul")) return std::nullopt;
    const auto a = at(inputOf(node, 0), depth);
    if (!a || is("Neg")) return a ? std::optional(scaled(*a, -1.0)) : a;
    const auto b = at(inputOf(node, 1), depth);
    if (!b) return b;
    return is("Mul") ? product(*a, *b) : sum(*a, is("Sub") ? scaled(*b, -1.0) : *b);
  }

  std::optional<Polynomial> power(const ::onnx::NodeProto& node, int depth) const {
    const auto exponent = m_graph.number(inputOf(node, 1));
    const auto base = at(inputOf(node, 0), depth);
    if (!base || !exponent || *exponent != std::floor(*exponent) || *exponent < 1.0 || *exponent > kHighestDegree)
      return std::nullopt;
    std::optional<Polynomial> result = base;
    for (int i = 1; i < static_cast<int>(*exponent) && result; ++i) result = product(*result, *base);
    return result;
  }

  std::optional<Polynomial> quotient(const ::onnx::NodeProto& node, int depth) const {
    const auto divisor = m_graph.number(inputOf(node, 1));
    auto dividend = at(inputOf(node, 0), depth);
    if (!dividend || !divisor || *divisor == 0.0) return std::nullopt;
    dividend->rounding = std::max(dividend->rounding, m_graph.roundingOf(inputOf(node, 1)));
    return scaled(std::move(*dividend), 1.0 / *divisor);
  }

  static Polynomial scaled(Polynomial a, double factor) {
    for (auto& [powers, coefficient] : a.terms) coefficient *= factor;
    return a;
  }

  static std::optional<Polynomial> sum(Polynomial a, const Polynomial& b) {
    for (const auto& [powers, coefficient] : b.terms) a.terms[powers] += coefficient;
    a.rounding = std::max(a.rounding, b.rounding);
    return a;
  }

  static std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
    Polynomial result{.terms = {}, .rounding = std::max(a.rounding, b.rounding)};
    for (const auto& [p, left] : a.terms)
      for (const auto& [q, right] : b.terms) {
        const std::pair powers(p.first + q.first, p.second + q.second);
        if (powers.first + powers.second > kHighestDegree) return std::nullopt;
        result.terms[powers] += left * right;
      }
    return result;
  }

  const OnnxReading& m_graph;
  const std::string& m_x;
  const std::string& m_f;
};

}  // namespace

/// A coefficient is a number, or the product of two.
bool Polynomial::isAbout(const std::map<std::pair<int, int>, double>& expected) const {
  const auto isSame = [&](const auto& term, const auto& other) {
    return term.first == other.first && std::abs(term.second - other.second) <= 2.0 * rounding * std::abs(other.second);
  };
  return std::ranges::equal(terms, expected, isSame);
}

std::optional<Polynomial> polynomialOf(const OnnxReading& graph, const std::string& tensor, const std::string& x,
                                       const std::string& f) {
  return PolynomialReading(graph, x, f).at(tensor);
}

}  // namespace fuseline
