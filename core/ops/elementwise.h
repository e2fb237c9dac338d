// The elementwise language: one small program describes an op's computation per element, forward or backward.
// Kernels (the CPU's strip engine, later device code) run programs; fusion concatenates them.
//
// A program runs on a grid of `rows x cols`. An operand is read or written per element (Access::Full), as a row vector
// [cols], the same for every row (Access::Row), as a column vector [rows], the same for every column (Access::Column),
// or as one value for all elements (Access::Scalar). A gated op works on the grid of its output: its input is twice as
// wide, and its left and right halves are the operand's lanes 0 and 1.
//
// All arithmetic is float32; every store rounds once to the operand's dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/numerics/random.h"
#include "core/support/sorted_map.h"
#include "core/support/sorted_set.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuseline {

/// Role of a tensor in one op. `slot` counts within the kind.
enum class OperandKind : std::uint8_t { Input, Parameter, Output, Residual, GradOutput, GradInput, GradParameter };

/// Names one tensor of one step: which of the step's ops, which kind, which slot.
struct OperandKey {
  int member = 0;
  OperandKind kind = OperandKind::Input;
  int slot = 0;

  auto operator<=>(const OperandKey&) const = default;
};

/// Text for dumps and tests: "m0.input0".
std::string toString(const OperandKey& key);

enum class Opcode : std::uint8_t {
  Load,
  Constant,
  Dropout,  // `constant` where the mask keeps the element, else 0
  Add,
  Sub,
  Mul,
  Div,
  Max,
  Min,
  Less,  // a < b ? 1 : 0; like Max and Min NaN where either operand is NaN
  Neg,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Tanh,
  Erf,
  Sigmoid,
  Gelu,
  GeluGrad,  // tanh form and its derivative, te_ops 1.4
  ExactGelu,
  ExactGeluGrad,  // by the error function
  Silu,
  SiluGrad,
};

std::string_view opcodeName(Opcode opcode);

/// Full: one value per element. Row: a row vector, one value per column. Column: a column vector, one value per row.
/// Scalar: one value for all.
enum class Access : std::uint8_t { Full, Row, Column, Scalar };

/// Source or destination of a value. A two-lane operand is [rows, 2 * cols]; lane 1 starts at column `cols`, or the
/// lanes are interleaved in blocks of `interleave` columns. A column vector and a scalar have one lane.
struct OperandPlace {
  OperandKey operand;
  Access access = Access::Full;
  int lane = 0;
  int lanes = 1;
  std::int64_t interleave = 0;  // divides cols; 0: each lane in one piece

  /// The column of the operand for column `col` of `cols` of the grid.
  std::int64_t columnOf(std::int64_t col, std::int64_t cols) const;
  /// How many of the grid's next `count` columns from `col` on follow each other in the operand.
  std::int64_t runLength(std::int64_t col, std::int64_t count) const;

  auto operator<=>(const OperandPlace&) const = default;
};

/// Index of an instruction; its result is the value.
using ValueIndex = int;

struct Instruction {
  Opcode opcode = Opcode::Constant;
  ValueIndex a = -1;
  ValueIndex b = -1;
  double constant = 0.0;  // Constant, Dropout
  OperandPlace place;     // Load; of Dropout the lanes, which number the elements
  DropoutMask mask;       // Dropout

  bool operator==(const Instruction&) const = default;
};

/// Writes a value per element.
struct Store {
  ValueIndex value;
  OperandPlace place;
  bool operator==(const Store&) const = default;
};

/// Sums a value over all rows, in float32, into a [lanes * cols] operand; with Access::Scalar over all elements, too,
/// into an operand [1], which no two sums share.
struct ColumnSum {
  ValueIndex value;
  OperandPlace place;
  bool operator==(const ColumnSum&) const = default;
};

/// Sums a value over the columns of each row, in float32, into a column vector [rows]. No two sums share an operand.
struct RowSum {
  ValueIndex value;
  OperandPlace place;
  bool operator==(const RowSum&) const = default;
};

struct ElementwiseProgram {
  std::vector<Instruction> code;
  std::vector<Store> stores;
  std::vector<ColumnSum> columnSums;
  std::vector<RowSum> rowSums;

  bool operator==(const ElementwiseProgram&) const = default;
};

/// One line an instruction; for tests and `fuseline fuse --stage`.
std::string toString(const ElementwiseProgram& program);

class ElementwiseComposer;

/// Interface with which an op's definition writes its program. Values are cheap handles; equal loads are shared.
class ElementwiseBuilder {
 public:
  /// interleave: of a gated op's halves, or of the lanes.
  ElementwiseBuilder(ElementwiseComposer& composer, int member, int lane, int lanes, std::int64_t interleave = 0);

  // Operands of the op. `lane` selects a half of a gated op's wide tensor: 0 or 1; -1 means not gated.
  ValueIndex input(int slot = 0, int lane = -1);
  ValueIndex parameterRow(int slot = 0);
  /// A parameter of one element.
  ValueIndex parameterScalar(int slot = 0);
  /// An input with one value per row.
  ValueIndex inputColumn(int slot);
  /// A forward input, read again by backward.
  ValueIndex savedInput(int slot = 0, int lane = -1) { return input(slot, lane); }
  /// A constant 0 when nothing downstream needs this output.
  ValueIndex gradOutput(int slot = 0);

  void output(int slot, ValueIndex value);
  void gradInput(int slot, ValueIndex value, int lane = -1);
  void gradParameterColumnSum(int slot, ValueIndex value);
  /// Gradient of a parameter with one element.
  void gradParameterSum(int slot, ValueIndex value);
  /// Gradient of an input with one value per row.
  void gradInputRowSum(int slot, ValueIndex value);

  /// `kept` where the mask keeps the element of the op's tensor, else 0.
  ValueIndex dropout(const DropoutMask& mask, double kept);
  ValueIndex constant(double value);
  ValueIndex add(ValueIndex a, ValueIndex b);
  ValueIndex mul(ValueIndex a, ValueIndex b);
  ValueIndex unary(Opcode opcode, ValueIndex a);
  ValueIndex binary(Opcode opcode, ValueIndex a, ValueIndex b);

 private:
  OperandPlace place(OperandKind kind, int slot, Access access, int lane) const;
  OperandPlace columnPlace(OperandKind kind, int slot) const;

  ElementwiseComposer& m_composer;
  int m_member;
  int m_lane;
  int m_lanes;
  std::int64_t m_interleave;
};

class Attributes;

/// The elementwise definition of an op. A gated op reads input 0 as two lanes and has cols = half its width; the lanes
/// are halves, or interleaved if `interleave` returns a number of columns other than 0.
struct ElementwiseDefinition {
  std::function<void(ElementwiseBuilder&, const Attributes&)> forward;
  std::function<void(ElementwiseBuilder&, const Attributes&)> backward;
  bool isGated = false;
  std::function<std::int64_t(const Attributes&)> interleave = {};

  std::int64_t interleaveFor(const Attributes& attributes) const;

  explicit operator bool() const { return static_cast<bool>(forward); }
};

/// Builds the program of one op or of a chain of ops.
class ElementwiseComposer {
 public:
  /// Declares that `reader` is the same tensor as `source`: reader reads the values written to source.
  void link(OperandKey reader, OperandKey source);
  /// Declares that an operand does not exist: reads return 0, writes are dropped.
  void setAbsent(OperandKey key);
  /// Declares that a value written here has no consumer outside: it is not stored.
  void setInternal(OperandKey key);

  /// Appends one op. `lanes` is 2 for an op with tensors twice as wide as the grid (it precedes a gated op in forward
  /// order), else 1; its definition is then run once per lane. interleave: that of the gated op.
  void append(int member, const ElementwiseDefinition& definition, const Attributes& attributes, bool isBackward,
              int lanes, std::int64_t interleave = 0);

  /// Removes instructions that no store or sum needs, and returns the program.
  ElementwiseProgram finish();

 private:
  friend class ElementwiseBuilder;
  ValueIndex load(const OperandPlace& place);
  ValueIndex emit(Instruction instruction);
  void store(const OperandPlace& place, ValueIndex value);
  void columnSum(const OperandPlace& place, ValueIndex value);
  void rowSum(const OperandPlace& place, ValueIndex value);
  OperandKey resolve(OperandKey key) const;
  bool isZero(ValueIndex value) const;

  ElementwiseProgram m_program;
  SortedMap<OperandKey, OperandKey> m_links;
  SortedSet<OperandKey> m_absent;
  SortedSet<OperandKey> m_internal;
  SortedMap<std::pair<OperandKey, int>, ValueIndex> m_known;  // by operand and lane
  SortedMap<OperandPlace, ValueIndex> m_loads;
};

}  // namespace fuseline
