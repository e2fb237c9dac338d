// One element at a time, one instruction at a time.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/elementwise_interpreter.h"

#include <cmath>

namespace fuseline::testing {

namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double geluTanh(double x) { return std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)); }

/// Silu and Gelu are 0 at -inf, with slope 0; infinite at inf, with slope 1.
double limitAtInfinity(double x) { return x < 0 ? 0.0 : x; }
double slopeAtInfinity(double x) { return x < 0 ? 0.0 : 1.0; }

double geluGrad(double x) {
  if (std::isinf(x)) return slopeAtInfinity(x);
  const double t = geluTanh(x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * 0.7978845608028654 * (1.0 + 0.134145 * x * x);
}

double normalDistribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

double exactGeluGrad(double x) {
  return normalDistribution(x) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::acos(-1.0));
}

double siluGrad(double x) { return std::isinf(x) ? slopeAtInfinity(x) : sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))); }

/// Max, Min and Less, which NaN passes through.
double compare(Opcode opcode, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  if (opcode == Opcode::Less) return a < b ? 1.0 : 0.0;
  return (a < b) == (opcode == Opcode::Max) ? b : a;
}

double evaluate(Opcode opcode, double a, double b) {
  switch (opcode) {
    case Opcode::Add: return a + b;
    case Opcode::Sub: return a - b;
    case Opcode::Mul: return a * b;
    case Opcode::Div: return a / b;
    case Opcode::Max:
    case Opcode::Min:
    case Opcode::Less: return compare(opcode, a, b);
    case Opcode::Neg: return -a;
    case Opcode::Exp: return std::exp(a);
    case Opcode::Log: return std::log(a);
    case Opcode::Sqrt: return std::sqrt(a);
    case Opcode::Rsqrt: return 1.0 / std::sqrt(a);
    case Opcode::Tanh: return std::tanh(a);
    case Opcode::Erf: return std::erf(a);
    case Opcode::Sigmoid: return sigmoid(a);
    case Opcode::Gelu: return std::isinf(a) ? limitAtInfinity(a) : 0.5 * a * (1.0 + geluTanh(a));
    case Opcode::GeluGrad: return geluGrad(a);
    case Opcode::ExactGelu: return std::isinf(a) ? limitAtInfinity(a) : a * normalDistribution(a);
    case Opcode::ExactGeluGrad: return std::isinf(a) ? normalDistribution(a) : exactGeluGrad(a);
    case Opcode::Silu: return std::isinf(a) ? limitAtInfinity(a) : a * sigmoid(a);
    case Opcode::SiluGrad: return siluGrad(a);
    case Opcode::Load:
    case Opcode::Constant:
    case Opcode::Dropout: break;
  }
  return std::nan("");
}

/// The grid and the element that is being worked on.
struct Cursor {
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t row = 0;
  std::int64_t col = 0;

  std::size_t index(const OperandPlace& place) const {
    if (place.access == Access::Scalar) return 0;
    if (place.access == Access::Column) return static_cast<std::size_t>(row);
    const std::int64_t inRow = columnOf(place);
    return static_cast<std::size_t>(place.access == Access::Row ? inRow : row * place.lanes * cols + inRow);
  }
  std::size_t size(const OperandPlace& place) const {
    if (place.access == Access::Scalar) return 1;
    if (place.access == Access::Column) return static_cast<std::size_t>(rows);
    return static_cast<std::size_t>((place.access == Access::Row ? 1 : rows) * place.lanes * cols);
  }

 private:
  /// A row is [lanes][cols], or [blocks][lanes][interleave].
  std::int64_t columnOf(const OperandPlace& place) const {
    const std::int64_t width = place.interleave > 0 ? place.interleave : cols;
    return (col / width * place.lanes + place.lane) * width + col % width;
  }
};

std::vector<double> evaluateElement(const ElementwiseProgram& program, const Cursor& at,
                                    const OperandValues& operands) {
  std::vector<double> values;
  const auto valueAt = [&](ValueIndex i) { return i < 0 ? 0.0 : values[static_cast<std::size_t>(i)]; };
  for (const Instruction& instruction : program.code) {
    if (instruction.opcode == Opcode::Load)
      values.push_back(operands.at(instruction.place.operand).at(at.index(instruction.place)));
    else if (instruction.opcode == Opcode::Constant)
      values.push_back(instruction.constant);
    else if (instruction.opcode == Opcode::Dropout)
      values.push_back(instruction.mask.keeps(at.index(instruction.place)) ? instruction.constant : 0.0);
    else
      values.push_back(evaluate(instruction.opcode, valueAt(instruction.a), valueAt(instruction.b)));
  }
  return values;
}

OperandValues zeroResults(const ElementwiseProgram& program, const Cursor& grid) {
  OperandValues results;
  for (const Store& store : program.stores) results[store.place.operand].resize(grid.size(store.place));
  for (const ColumnSum& sum : program.columnSums) results[sum.place.operand].resize(grid.size(sum.place));
  for (const RowSum& sum : program.rowSums) results[sum.place.operand].resize(grid.size(sum.place));
  return results;
}

}  // namespace

OperandValues interpret(const ElementwiseProgram& program, std::int64_t rows, std::int64_t cols,
                        const OperandValues& operands) {
  Cursor at{.rows = rows, .cols = cols};
  OperandValues results = zeroResults(program, at);
  for (at.row = 0; at.row < rows; ++at.row)
    for (at.col = 0; at.col < cols; ++at.col) {
      const std::vector<double> values = evaluateElement(program, at, operands);
      for (const Store& store : program.stores)
        results.at(store.place.operand).at(at.index(store.place)) = values[static_cast<std::size_t>(store.value)];
      for (const ColumnSum& sum : program.columnSums)
        results.at(sum.place.operand).at(at.index(sum.place)) += values[static_cast<std::size_t>(sum.value)];
      for (const RowSum& sum : program.rowSums)
        results.at(sum.place.operand).at(at.index(sum.place)) += values[static_cast<std::size_t>(sum.value)];
    }
  return results;
}

}  // namespace fuseline::testing
