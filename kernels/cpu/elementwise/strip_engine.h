// The strip engine: runs an ElementwiseProgram over a grid in strips that stay in the first-level cache.
//
// Every instruction is one vector loop over a strip of at most kStripLength float32 values. Values between instructions
// never leave the cache, so a chain of ops costs only the memory traffic of its operands. Column sums are added from
// float32 partial sums per thread and per block of rows, in the order of the threads: the result is the same for the
// same number of threads. A row is summed by one thread, so row sums are always the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/elementwise.h"
#include "core/tensor/dtype.h"
#include "kernels/cpu/elementwise/row_sink.h"
#include "kernels/cpu/elementwise/strip_functions.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace fuseline::cpu {

/// Strips of 256 to 512 elements are best with an L1 of 48 KiB: shorter ones spend more time on dispatch, longer ones
/// exceed the cache (measured 2026-11 on a 2-core Zen 5 server).
constexpr std::int64_t kStripLength = 512;

/// A program's operand in memory: row-major and contiguous, [rows, lanes * cols], [lanes * cols], [rows] or, for a
/// scalar, [1].
struct StripOperand {
  DType dtype = DType::F32;
  int slot = -1;  // index into the pointers of run()
};
using StripOperandOf = std::function<StripOperand(const OperandKey&)>;

class StripEngine {
 public:
  /// The engine is compiled for a number of columns and threads; the number of rows comes with each run.
  StripEngine(const ElementwiseProgram& program, std::int64_t cols, int threads, const StripOperandOf& operandOf);

  /// Scratch memory for runs of up to maxRows rows.
  std::size_t workspaceBytes(std::int64_t maxRows) const;

  /// The finished rows of the full operand in this slot go to a sink.
  struct Drain {
    int slot = -1;
    const RowSink* sink = nullptr;
  };

  /// Pointers by slot, at row 0. Operands may alias if they are the same elements in the same dtype (in place).
  /// workspace: workspaceBytes(rows), aligned to 64 bytes. rows == 0 is legal: column sums become zero.
  /// firstRow: the place of row 0 in the whole tensors, by which dropouts number their elements; with a sink a multiple
  /// of its blocks.
  void run(std::span<std::byte* const> pointers, std::int64_t rows, std::byte* workspace, std::int64_t firstRow,
           const Drain& drain) const;
  void run(std::span<std::byte* const> pointers, std::int64_t rows, std::byte* workspace,
           std::int64_t firstRow = 0) const {
    run(pointers, rows, workspace, firstRow, {});
  }

 private:
  /// Where a strip of values is. An address is base + row * rowBytes + col * elementBytes.
  struct Location {
    enum class Kind { Register, Constant, Row, Column, ColumnSum, RowSum, Full } kind = Kind::Register;
    int index = 0;  // number of the register, constant, vector or sum; slot of a full operand
    std::int64_t elementBytes = 0;
    OperandPlace place = {};  // of a full operand
  };
  struct Operation {
    enum class What { Function, Interleaved, Dropout, RowSum } what = What::Function;
    StripFunction function = nullptr;  // Function, and Interleaved: from or to memory with interleaved lanes
    int out = -1;                      // indices into m_locations; -1: none
    int a = -1;
    int b = -1;
    int dropout = -1;  // index into m_dropouts
  };
  /// A row vector, a column vector, or a sum that becomes one.
  struct VectorOperand {
    OperandPlace place;
    StripOperand operand;
  };
  /// An operand of one value, which is a constant for the length of a run.
  struct ScalarOperand {
    int constant = 0;  // index into m_constants
    StripOperand operand;
  };
  struct Grid;
  struct Scratch;
  struct Address;
  struct Share;
  friend class StripCompiler;

  /// blockRows: of a sink; 0: there is no sink.
  Grid gridFor(std::int64_t rows, std::int64_t blockRows = 0) const;
  /// Floats of one set of partial column sums.
  std::int64_t numSums(const Grid& grid) const;
  Scratch layOut(std::byte* workspace, const Grid& grid) const;
  void prepare(std::span<std::byte* const> pointers, const Grid& grid, const Scratch& scratch) const;
  Address addressOf(const Location& location, std::span<std::byte* const> pointers, const Grid& grid,
                    const Scratch& scratch, int thread) const;
  Share shareOf(std::span<std::byte* const> pointers, const Grid& grid, const Scratch& scratch, int thread) const;
  void runShare(Share share, int thread) const;
  /// After the row before `row`: passes on the block that ends there, and moves to the next.
  void drainRows(Share& share, int thread, std::int64_t row) const;
  void moveScratchRows(Share& share, int thread, std::int64_t first) const;
  void runStrip(const Share& share, std::int64_t row, std::int64_t col, std::size_t length) const;
  void runInterleaved(const Share& share, const Operation& operation, std::int64_t row, std::int64_t col,
                      std::int64_t length) const;
  void runDropout(const Share& share, const Operation& operation, std::int64_t row, std::int64_t col,
                  std::int64_t length) const;
  void addRowSums(const Share& share, const Operation& operation, std::int64_t row, std::int64_t col,
                  std::int64_t length) const;
  void loadColumns(const Share& share, std::int64_t row) const;
  void storeRowSums(const Share& share, std::int64_t row) const;
  void clearSums(std::span<std::byte* const> pointers, std::int64_t rows) const;
  void prefetchStrip(const Share& share, std::int64_t row, std::int64_t col, std::int64_t length) const;
  void flushSums(const Share& share) const;
  void storeSums(std::span<std::byte* const> pointers, const Grid& grid, const Scratch& scratch) const;

  std::int64_t m_cols = 0;
  int m_threads = 1;
  bool m_isContiguous = true;  // every Full operand has one lane: rows follow each other without gaps
  int m_numRegisters = 0;
  std::vector<double> m_constants;
  std::vector<ScalarOperand> m_scalars;
  std::vector<Instruction> m_dropouts;
  std::vector<VectorOperand> m_rows;
  std::vector<VectorOperand> m_columns;
  std::vector<VectorOperand> m_columnSums;
  std::vector<VectorOperand> m_rowSums;
  std::vector<Location> m_locations;
  std::vector<int> m_memory;  // the distinct full operands among the locations
  std::vector<Operation> m_operations;
};

}  // namespace fuseline::cpu
