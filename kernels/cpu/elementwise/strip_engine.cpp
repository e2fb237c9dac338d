// Compiles elementwise programs to lists of strip operations, and walks grids with them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/strip_engine.h"
#include "core/tensor/scaling.h"
#include "kernels/cpu/workspace.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

namespace fuseline::cpu {

namespace {

/// Distance between strips in scratch memory; the extra lines keep loads and stores of neighbors from meeting at the
/// same offset in a 4 KiB page.
constexpr std::int64_t kStripStride = kStripLength + 32;
/// Rows of narrow grids are handled several at a time so that strips stay long.
constexpr std::int64_t kNarrowCols = kStripLength / 2;
/// Float32 partial sums are added to the thread's total after this number of rows, which bounds their rounding error.
constexpr std::int64_t kSumBlockRows = 64;
/// Rounding to bf16 in the same loop pays for cheap operations only: with GELU it takes 12.7 cycles per 16 elements,
/// in two loops 9.9; with an addition 3.6 against 4.1 (measured 2026-11, Zen 5).
bool isCheap(Opcode opcode) { return opcode <= Opcode::Neg; }

constexpr std::int64_t kLineBytes = 64;
/// Prefetching pays for programs with at least this number of streams over this number of bytes, which the CPU does not
/// prefetch by itself: SwiGLU's backward ran 1.5 times as fast. With two streams, or in the cache, it cost 8 %
/// (measured 2026-11, Zen 5).
constexpr std::size_t kMinStreamsToPrefetch = 3;
constexpr std::int64_t kMinBytesToPrefetch = std::int64_t{6} << 20;
/// Minimum number of element operations per thread: with fewer, waking a thread does not pay.
constexpr std::int64_t kWorkPerThread = 16384;

/// f(first, count) for every contiguous run of a place's columns [col, col + length).
template <class Function>
void forEachRun(const OperandPlace& place, std::int64_t col, std::int64_t length, Function f) {
  for (std::int64_t done = 0; done < length;) {
    const std::int64_t count = place.runLength(col + done, length - done);
    f(col + done, count);
    done += count;
  }
}

/// Can the result be small where its operands are not, so that their errors become visible? A sum with an operand from
/// memory, such as a residual, does not count: that operand is no more precise than bf16.
bool magnifiesErrors(const ElementwiseProgram& program, const Instruction& instruction) {
  const auto isComputed = [&](ValueIndex operand) {
    return program.code[static_cast<std::size_t>(operand)].opcode != Opcode::Load;
  };
  switch (instruction.opcode) {
    case Opcode::Sub:
    case Opcode::Less:
    case Opcode::Log:
    case Opcode::Exp: return true;
    case Opcode::Add: return isComputed(instruction.a) && isComputed(instruction.b);
    default: return false;
  }
}

/// A value needs full precision if a tensor finer than bf16 is stored or computed from it, or if its errors grow in a
/// value computed from it.
std::vector<Precision> precisions(const ElementwiseProgram& program, const StripOperandOf& operandOf) {
  std::vector<Precision> needed(program.code.size(), Precision::Bf16);
  const auto require = [&](ValueIndex value, const OperandPlace& place) {
    if (operandOf(place.operand).dtype != DType::BF16) needed[static_cast<std::size_t>(value)] = Precision::Full;
  };
  for (const Store& store : program.stores) require(store.value, store.place);
  for (const ColumnSum& sum : program.columnSums) require(sum.value, sum.place);
  for (const RowSum& sum : program.rowSums) require(sum.value, sum.place);
  for (std::size_t i = program.code.size(); i-- > 0;) {
    if (needed[i] != Precision::Full && !magnifiesErrors(program, program.code[i])) continue;
    for (const ValueIndex operand : {program.code[i].a, program.code[i].b})
      if (operand >= 0) needed[static_cast<std::size_t>(operand)] = Precision::Full;
  }
  return needed;
}

}  // namespace

/// Fills an engine's tables from a program: drafts an operation for every instruction, sum and store, merges codecs
/// into their neighbors, and assigns registers.
class StripCompiler {
 public:
  StripCompiler(StripEngine& engine, const ElementwiseProgram& program, const StripOperandOf& operandOf)
      : m_engine(engine), m_program(program), m_operandOf(operandOf), m_precisions(precisions(program, operandOf)) {}

  void compile() {
    draftAll();
    mergeDecoding();
    mergeEncoding();
    std::erase_if(m_drafts, [](const Draft& draft) { return draft.isMerged; });
    assignRegisters();
    for (int location = 0; location < static_cast<int>(m_engine.m_locations.size()); ++location)
      if (isFirstInMemory(location)) m_engine.m_memory.push_back(location);
    for (const Draft& draft : m_drafts) m_engine.m_operations.push_back(operationOf(draft));
  }

 private:
  using Location = StripEngine::Location;
  using Kind = Location::Kind;

  struct Draft {
    enum class What { Decode, Compute, Encode, Dropout, RowSum } what = What::Compute;
    Opcode opcode = Opcode::Add;
    Precision precision = Precision::Full;
    DType dtype = DType::F32;  // of the codec
    StripForms forms;
    int out = -1;
    int a = -1;
    int b = -1;
    int dropout = -1;
    bool isMerged = false;
  };

  // Drafting: every value has its own register ---------------------------------------------------------------------

  void draftAll() {
    m_values.assign(m_program.code.size(), -1);
    for (std::size_t i = 0; i < m_program.code.size(); ++i) m_values[i] = draftInstruction(i);
    for (const ColumnSum& sum : m_program.columnSums) draftSum(sum);
    for (const RowSum& sum : m_program.rowSums) draftSum(sum);
    // A value that is still in an operand's memory is stored first: the operand may be overwritten in place.
    for (const Store& store : m_program.stores)
      if (isInMemory(valueOf(store.value))) draftStore(store);
    for (const Store& store : m_program.stores)
      if (!isInMemory(valueOf(store.value))) draftStore(store);
  }

  int draftInstruction(std::size_t i) {
    const Instruction& instruction = m_program.code[i];
    if (instruction.opcode == Opcode::Load) return draftLoad(instruction.place);
    if (instruction.opcode == Opcode::Constant) return addConstant(instruction.constant);
    if (const int known = equalValue(i); known >= 0) return known;
    if (instruction.opcode == Opcode::Dropout) return draftDropout(instruction);
    m_drafts.push_back({.opcode = instruction.opcode,
                        .precision = m_precisions[i],
                        .out = addRegister(),
                        .a = valueOf(instruction.a),
                        .b = valueOf(instruction.b)});
    return m_drafts.back().out;
  }

  int draftDropout(const Instruction& instruction) {
    if (instruction.place.lanes > 1) m_engine.m_isContiguous = false;
    m_engine.m_dropouts.push_back(instruction);
    m_drafts.push_back({.what = Draft::What::Dropout,
                        .out = addRegister(),
                        .dropout = static_cast<int>(m_engine.m_dropouts.size()) - 1});
    return m_drafts.back().out;
  }

  /// A value computed before in the same way: forward and backward of one op share functions.
  int equalValue(std::size_t i) const {
    for (std::size_t earlier = 0; earlier < i; ++earlier)
      if (m_program.code[earlier] == m_program.code[i] && m_precisions[earlier] == m_precisions[i])
        return m_values[earlier];
    return -1;
  }

  int draftLoad(const OperandPlace& place) {
    const StripOperand operand = m_operandOf(place.operand);
    if (place.access == Access::Scalar) return addScalar(operand);
    if (place.access == Access::Row) return addVector(m_engine.m_rows, Kind::Row, place, operand);
    if (place.access == Access::Column) return addVector(m_engine.m_columns, Kind::Column, place, operand);
    const int memory = addMemory(place);
    if (operand.dtype == DType::F32 && !isInterleaved(memory)) return memory;  // computed on in place
    m_drafts.push_back({.what = Draft::What::Decode, .dtype = operand.dtype, .out = addRegister(), .a = memory});
    return m_drafts.back().out;
  }

  void draftSum(const ColumnSum& sum) {
    const int partial = addVector(m_engine.m_columnSums, Kind::ColumnSum, sum.place, m_operandOf(sum.place.operand));
    m_drafts.push_back({.opcode = Opcode::Add, .out = partial, .a = partial, .b = valueOf(sum.value)});
  }

  void draftSum(const RowSum& sum) {
    const int total = addVector(m_engine.m_rowSums, Kind::RowSum, sum.place, m_operandOf(sum.place.operand));
    m_drafts.push_back({.what = Draft::What::RowSum, .out = total, .a = valueOf(sum.value)});
  }

  void draftStore(const Store& store) {
    m_drafts.push_back({.what = Draft::What::Encode,
                        .dtype = m_operandOf(store.place.operand).dtype,
                        .out = addMemory(store.place),
                        .a = valueOf(store.value)});
  }

  int addLocation(Location location) {
    m_engine.m_locations.push_back(location);
    return static_cast<int>(m_engine.m_locations.size()) - 1;
  }

  int addRegister() { return addLocation({.kind = Kind::Register}); }

  int addConstant(double value) {
    m_engine.m_constants.push_back(value);
    return addLocation({.kind = Kind::Constant, .index = static_cast<int>(m_engine.m_constants.size()) - 1});
  }

  int addScalar(const StripOperand& operand) {
    const int location = addConstant(0.0);
    m_engine.m_scalars.push_back({m_engine.m_locations.back().index, operand});
    return location;
  }

  int addVector(std::vector<StripEngine::VectorOperand>& operands, Kind kind, const OperandPlace& place,
                const StripOperand& operand) {
    operands.push_back({place, operand});
    return addLocation(
        {.kind = kind, .index = static_cast<int>(operands.size()) - 1, .elementBytes = sizeBytes(DType::F32)});
  }

  int addMemory(const OperandPlace& place) {
    if (place.lanes > 1) m_engine.m_isContiguous = false;
    const StripOperand operand = m_operandOf(place.operand);
    return addLocation(
        {.kind = Kind::Full, .index = operand.slot, .elementBytes = sizeBytes(operand.dtype), .place = place});
  }

  int valueOf(ValueIndex value) const { return value < 0 ? -1 : m_values[static_cast<std::size_t>(value)]; }
  Kind kindOf(int location) const { return m_engine.m_locations[static_cast<std::size_t>(location)].kind; }
  bool isInMemory(int location) const { return location >= 0 && kindOf(location) == Kind::Full; }
  bool isInterleaved(int location) const {
    return isInMemory(location) && m_engine.m_locations[static_cast<std::size_t>(location)].place.interleave > 0;
  }
  bool isRegister(int location) const { return location >= 0 && kindOf(location) == Kind::Register; }

  /// The first of the locations that are the same operand and lane.
  bool isFirstInMemory(int location) const {
    if (!isInMemory(location)) return false;
    const auto same = [&](const Location& other) {
      const Location& here = m_engine.m_locations[static_cast<std::size_t>(location)];
      return other.kind == Kind::Full && other.index == here.index && other.place.lane == here.place.lane;
    };
    return std::ranges::find_if(m_engine.m_locations, same) - m_engine.m_locations.begin() == location;
  }

  // Merging codecs ---------------------------------------------------------------------------------------------------

  static bool reads(const Draft& draft, int location) { return draft.a == location || draft.b == location; }

  std::vector<Draft*> readersOf(int location) {
    std::vector<Draft*> readers;
    for (Draft& draft : m_drafts)
      if (!draft.isMerged && reads(draft, location)) readers.push_back(&draft);
    return readers;
  }

  /// A bf16 operand that one computation reads is converted by it.
  void mergeDecoding() {
    for (Draft& decode : m_drafts) {
      if (decode.what != Draft::What::Decode || decode.dtype != DType::BF16 || isInterleaved(decode.a)) continue;
      const std::vector<Draft*> readers = readersOf(decode.out);
      if (readers.size() != 1 || readers.front()->what != Draft::What::Compute) continue;
      Draft& reader = *readers.front();
      if (reader.a == reader.b) continue;
      (reader.a == decode.out ? reader.forms.a : reader.forms.b) = StripForm::Bf16;
      (reader.a == decode.out ? reader.a : reader.b) = decode.a;
      decode.isMerged = true;
    }
  }

  /// A value that is only stored is computed into its operand. Not if memory is read later: the operand may take the
  /// place of one that is still to be read.
  void mergeEncoding() {
    for (Draft& encode : m_drafts) {
      const bool isMergeable = encode.dtype == DType::F32 || encode.dtype == DType::BF16;
      if (encode.what != Draft::What::Encode || !isMergeable || !isRegister(encode.a)) continue;
      if (isInterleaved(encode.out)) continue;
      Draft* const maker = makerOf(encode.a);
      if (!maker || maker->what != Draft::What::Compute || readersOf(encode.a).size() != 1) continue;
      if (readsMemoryAfter(*maker) || (encode.dtype == DType::BF16 && !isCheap(maker->opcode))) continue;
      maker->out = encode.out;
      maker->forms.out = encode.dtype == DType::BF16 ? StripForm::Bf16 : StripForm::F32;
      encode.isMerged = true;
    }
  }

  Draft* makerOf(int location) {
    const auto found =
        std::ranges::find_if(m_drafts, [&](const Draft& draft) { return !draft.isMerged && draft.out == location; });
    return found == m_drafts.end() ? nullptr : &*found;
  }

  bool readsMemoryAfter(const Draft& maker) const {
    for (const Draft* later = &maker + 1; later != m_drafts.data() + m_drafts.size(); ++later)
      if (!later->isMerged && (isInMemory(later->a) || isInMemory(later->b))) return true;
    return false;
  }

  // Registers --------------------------------------------------------------------------------------------------------

  /// Gives each register a number; after a value's last use its register is reused.
  void assignRegisters() {
    std::vector<int> free;
    for (std::size_t i = 0; i < m_drafts.size(); ++i) {
      const Draft& draft = m_drafts[i];
      if (isLastRead(draft.a, i)) free.push_back(numberOf(draft.a));
      if (draft.b != draft.a && isLastRead(draft.b, i)) free.push_back(numberOf(draft.b));
      if (!isRegister(draft.out)) continue;
      if (free.empty()) free.push_back(m_engine.m_numRegisters++);
      numberOf(draft.out) = free.back();
      free.pop_back();
    }
  }

  int& numberOf(int location) { return m_engine.m_locations[static_cast<std::size_t>(location)].index; }

  bool isLastRead(int location, std::size_t position) const {
    if (!isRegister(location)) return false;
    return std::none_of(m_drafts.begin() + static_cast<std::ptrdiff_t>(position) + 1, m_drafts.end(),
                        [&](const Draft& later) { return reads(later, location); });
  }

  static StripFunction functionOf(const Draft& draft) {
    switch (draft.what) {
      case Draft::What::Decode: return decodeFunction(draft.dtype);
      case Draft::What::Encode: return encodeFunction(draft.dtype);
      case Draft::What::Compute: return computeFunction(draft.opcode, draft.precision, draft.forms);
      case Draft::What::Dropout:
      case Draft::What::RowSum: break;
    }
    return nullptr;
  }

  StripEngine::Operation::What kindOf(const Draft& draft) const {
    using What = StripEngine::Operation::What;
    if (draft.what == Draft::What::Dropout) return What::Dropout;
    if (draft.what == Draft::What::RowSum) return What::RowSum;
    return isInterleaved(draft.a) || isInterleaved(draft.out) ? What::Interleaved : What::Function;
  }

  StripEngine::Operation operationOf(const Draft& draft) const {
    return {.what = kindOf(draft),
            .function = functionOf(draft),
            .out = draft.out,
            .a = draft.a,
            .b = draft.b,
            .dropout = draft.dropout};
  }

  StripEngine& m_engine;
  const ElementwiseProgram& m_program;
  const StripOperandOf& m_operandOf;
  std::vector<Precision> m_precisions;
  std::vector<int> m_values;  // location of each value
  std::vector<Draft> m_drafts;
};

/// How a number of rows is walked. One grid row is `fold` rows of the operands.
struct StripEngine::Grid {
  std::int64_t rows = 0;
  std::int64_t cols = 0;      // of a grid row
  std::int64_t lastCols = 0;  // of the last grid row
  std::int64_t fold = 1;
  std::int64_t stripCols = 0;
  std::int64_t stripsPerRow = 0;
  std::int64_t stripsPerShare = 1;  // threads divide the grid between these only
  int threads = 1;
  bool isPrefetched = false;

  std::int64_t numStrips() const { return rows * stripsPerRow; }
  std::int64_t numShares() const { return ceilDiv(numStrips(), stripsPerShare); }
  /// Where a thread's strips begin.
  std::int64_t firstStrip(int thread) const {
    return std::min(numShares() * thread / threads * stripsPerShare, numStrips());
  }
  std::int64_t colsOf(std::int64_t row) const { return row + 1 == rows ? lastCols : cols; }
};

/// Parts of the workspace.
struct StripEngine::Scratch {
  float* constants = nullptr;  // [constants][kStripStride]
  float* rows = nullptr;       // [row vectors][grid.cols]
  float* columns = nullptr;    // [threads][column vectors][kStripStride]: each row's value, repeated
  float* registers = nullptr;  // [threads][registers][kStripStride]
  float* sums = nullptr;       // [threads][block, total][column sums][grid.cols]
  float* rowSums = nullptr;    // [threads][row sums][kStripStride]: of the rows of one grid row
  std::int64_t firstRow = 0;
  Drain drain;
  std::size_t bytes = 0;
};

struct StripEngine::Address {
  std::byte* base = nullptr;
  std::int64_t rowBytes = 0;
  std::int64_t elementBytes = 0;

  std::byte* at(std::int64_t row, std::int64_t col) const {
    return base ? base + row * rowBytes + col * elementBytes : nullptr;
  }
};

/// The working data of one thread.
struct StripEngine::Share {
  std::span<std::byte* const> pointers;
  const Grid& grid;
  const Scratch& scratch;
  std::vector<Address> addresses;
  float* columns = nullptr;
  float* rowSums = nullptr;
  std::span<float> blockSums;  // [sums][grid.cols]
  std::span<float> totalSums;
};

StripEngine::StripEngine(const ElementwiseProgram& program, std::int64_t cols, int threads,
                         const StripOperandOf& operandOf)
    : m_cols(cols), m_threads(threads) {
  StripCompiler(*this, program, operandOf).compile();
}

StripEngine::Grid StripEngine::gridFor(std::int64_t rows, std::int64_t blockRows) const {
  Grid grid{.rows = rows, .cols = m_cols, .lastCols = m_cols};
  const bool hasVectors = !(m_rows.empty() && m_columns.empty() && m_columnSums.empty() && m_rowSums.empty());
  const bool keepsRows = blockRows > 0 || !m_isContiguous;
  const bool isFlat = !keepsRows && !hasVectors;
  if (isFlat) grid = {.rows = 1, .cols = rows * m_cols, .lastCols = rows * m_cols};
  if (!isFlat && !keepsRows && m_cols > 0 && m_cols < kNarrowCols && rows > 1) {
    grid.fold = std::min(rows, kStripLength / m_cols);
    grid.rows = ceilDiv(rows, grid.fold);
    grid.cols = grid.fold * m_cols;
    grid.lastCols = (rows - (grid.rows - 1) * grid.fold) * m_cols;
  }
  if (grid.rows == 0 || grid.cols == 0) return {};
  const std::int64_t evenStrips = ceilDiv(grid.cols, kStripLength);
  grid.stripCols = isFlat ? kStripLength : ceilDiv(ceilDiv(grid.cols, evenStrips), 32) * 32;
  grid.stripsPerRow = ceilDiv(grid.cols, grid.stripCols);
  const std::int64_t work = rows * m_cols * static_cast<std::int64_t>(m_operations.size());
  grid.stripsPerShare =
      m_rowSums.empty() && blockRows == 0 ? 1 : grid.stripsPerRow * std::max<std::int64_t>(1, blockRows);
  grid.threads = static_cast<int>(std::clamp<std::int64_t>(std::min(work / kWorkPerThread, grid.numShares()), 1,
                                                           static_cast<std::int64_t>(m_threads)));
  std::int64_t bytesPerElement = 0;
  for (const int location : m_memory) bytesPerElement += m_locations[static_cast<std::size_t>(location)].elementBytes;
  grid.isPrefetched =
      m_memory.size() >= kMinStreamsToPrefetch && rows * m_cols * bytesPerElement >= kMinBytesToPrefetch;
  return grid;
}

std::int64_t StripEngine::numSums(const Grid& grid) const {
  return grid.cols * static_cast<std::int64_t>(m_columnSums.size());
}

StripEngine::Scratch StripEngine::layOut(std::byte* workspace, const Grid& grid) const {
  Scratch scratch;
  const auto take = [&](std::int64_t numFloats) {
    auto* const start = reinterpret_cast<float*>(workspace ? workspace + scratch.bytes : nullptr);
    scratch.bytes += workspacePart(static_cast<std::size_t>(numFloats) * sizeof(float));
    return start;
  };
  scratch.constants = take(static_cast<std::int64_t>(m_constants.size()) * kStripStride);
  scratch.rows = take(static_cast<std::int64_t>(m_rows.size()) * grid.cols);
  scratch.columns = take(std::int64_t{grid.threads} * std::ssize(m_columns) * kStripStride);
  scratch.rowSums = take(std::int64_t{grid.threads} * std::ssize(m_rowSums) * kStripStride);
  scratch.registers = take(std::int64_t{grid.threads} * m_numRegisters * kStripStride);
  scratch.sums = take(2 * std::int64_t{grid.threads} * numSums(grid));
  return scratch;
}

std::size_t StripEngine::workspaceBytes(std::int64_t maxRows) const {
  Grid widest = gridFor(maxRows);  // fewer rows never need more
  widest.threads = m_threads;
  if (!m_rows.empty() || !m_columnSums.empty()) widest.cols = std::max({widest.cols, m_cols, kStripLength});
  return layOut(nullptr, widest).bytes;
}

void StripEngine::prepare(std::span<std::byte* const> pointers, const Grid& grid, const Scratch& scratch) const {
  for (std::size_t i = 0; i < m_constants.size(); ++i)
    std::fill_n(scratch.constants + static_cast<std::int64_t>(i) * kStripStride, kStripLength,
                static_cast<float>(m_constants[i]));
  for (const auto& [constant, operand] : m_scalars) {
    float* const strip = scratch.constants + std::int64_t{constant} * kStripStride;
    decodeFunction(operand.dtype)(strip, pointers[static_cast<std::size_t>(operand.slot)], nullptr, 1);
    std::fill_n(strip + 1, kStripLength - 1, *strip);
  }
  for (std::size_t i = 0; i < m_rows.size(); ++i) {
    const OperandPlace& place = m_rows[i].place;
    const StripOperand& operand = m_rows[i].operand;
    const std::byte* const from = pointers[static_cast<std::size_t>(operand.slot)];
    float* const to = scratch.rows + static_cast<std::int64_t>(i) * grid.cols;
    forEachRun(place, 0, m_cols, [&](std::int64_t col, std::int64_t count) {
      const std::byte* const run = from + place.columnOf(col, m_cols) * sizeBytes(operand.dtype);
      decodeFunction(operand.dtype)(to + col, run, nullptr, static_cast<std::size_t>(count));
    });
    for (std::int64_t copy = 1; copy < grid.fold; ++copy) std::copy_n(to, m_cols, to + copy * m_cols);
  }
}

StripEngine::Address StripEngine::addressOf(const Location& location, std::span<std::byte* const> pointers,
                                            const Grid& grid, const Scratch& scratch, int thread) const {
  const auto strip = [](float* base, std::int64_t index) {
    return Address{.base = reinterpret_cast<std::byte*>(base + index * kStripStride)};
  };
  switch (location.kind) {
    case Location::Kind::Register:
      return strip(scratch.registers, std::int64_t{thread} * m_numRegisters + location.index);
    case Location::Kind::Constant: return strip(scratch.constants, location.index);
    case Location::Kind::Column: return strip(scratch.columns, thread * std::ssize(m_columns) + location.index);
    case Location::Kind::RowSum: return strip(scratch.rowSums, thread * std::ssize(m_rowSums) + location.index);
    case Location::Kind::Row:
      return {.base = reinterpret_cast<std::byte*>(scratch.rows + location.index * grid.cols),
              .elementBytes = location.elementBytes};
    case Location::Kind::ColumnSum: {
      float* const block = scratch.sums + 2 * std::int64_t{thread} * numSums(grid);
      return {.base = reinterpret_cast<std::byte*>(block + location.index * grid.cols),
              .elementBytes = location.elementBytes};
    }
    case Location::Kind::Full: break;
  }
  const std::int64_t laneStart = location.place.interleave > 0 ? 0 : location.place.lane * m_cols;
  return {.base = pointers[static_cast<std::size_t>(location.index)] + laneStart * location.elementBytes,
          .rowBytes = location.place.lanes * grid.cols * location.elementBytes,
          .elementBytes = location.elementBytes};
}

void StripEngine::runStrip(const Share& share, std::int64_t row, std::int64_t col, std::size_t length) const {
  const auto at = [&](int location) -> std::byte* {
    return location < 0 ? nullptr : share.addresses[static_cast<std::size_t>(location)].at(row, col);
  };
  const auto count = static_cast<std::int64_t>(length);
  for (const Operation& operation : m_operations) switch (operation.what) {
      case Operation::What::Function:
        operation.function(at(operation.out), at(operation.a), at(operation.b), length);
        break;
      case Operation::What::Interleaved: runInterleaved(share, operation, row, col, count); break;
      case Operation::What::Dropout: runDropout(share, operation, row, col, count); break;
      case Operation::What::RowSum: addRowSums(share, operation, row, col, count); break;
    }
}

/// Converts between a strip and memory with interleaved lanes, run by run.
void StripEngine::runInterleaved(const Share& share, const Operation& operation, std::int64_t row, std::int64_t col,
                                 std::int64_t length) const {
  const auto at = [&](int index, std::int64_t from) {
    const OperandPlace& place = m_locations[static_cast<std::size_t>(index)].place;
    const Address& address = share.addresses[static_cast<std::size_t>(index)];
    if (place.interleave > 0) return address.at(row, place.columnOf(from, m_cols));
    return address.at(row, col) + (from - col) * std::int64_t{sizeof(float)};
  };
  const OperandPlace& from = m_locations[static_cast<std::size_t>(operation.a)].place;
  const OperandPlace& to = m_locations[static_cast<std::size_t>(operation.out)].place;
  forEachRun(from.interleave > 0 ? from : to, col, length, [&](std::int64_t first, std::int64_t count) {
    operation.function(at(operation.out, first), at(operation.a, first), nullptr, static_cast<std::size_t>(count));
  });
}

void StripEngine::runDropout(const Share& share, const Operation& operation, std::int64_t row, std::int64_t col,
                             std::int64_t length) const {
  const Instruction& dropout = m_dropouts[static_cast<std::size_t>(operation.dropout)];
  const std::int64_t rowStart = (share.scratch.firstRow + row * share.grid.fold) * dropout.place.lanes * m_cols;
  auto* const out = reinterpret_cast<float*>(share.addresses[static_cast<std::size_t>(operation.out)].base);
  forEachRun(dropout.place, col, length, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t index = rowStart + dropout.place.columnOf(first, m_cols);
    dropoutFunction()(out + (first - col), dropout.mask, static_cast<float>(dropout.constant),
                      static_cast<std::uint64_t>(index), static_cast<std::size_t>(count));
  });
}

/// A strip is a part of one row, or some whole rows.
void StripEngine::addRowSums(const Share& share, const Operation& operation, std::int64_t row, std::int64_t col,
                             std::int64_t length) const {
  const auto* values =
      reinterpret_cast<const float*>(share.addresses[static_cast<std::size_t>(operation.a)].at(row, col));
  auto* total = reinterpret_cast<float*>(share.addresses[static_cast<std::size_t>(operation.out)].base);
  for (std::int64_t first = 0; first < length; first += m_cols, ++total)
    *total += sumFunction()(values + first, static_cast<std::size_t>(std::min(m_cols, length - first)));
}

/// Repeats the values of a grid row's rows in the strips of column vectors.
void StripEngine::loadColumns(const Share& share, std::int64_t row) const {
  const std::int64_t numRows = share.grid.colsOf(row) / m_cols;
  const std::int64_t copies = std::min(m_cols, kStripLength);
  for (std::size_t i = 0; i < m_columns.size(); ++i) {
    const StripOperand& operand = m_columns[i].operand;
    const std::byte* const from = share.pointers[static_cast<std::size_t>(operand.slot)];
    float* const strip = share.columns + static_cast<std::int64_t>(i) * kStripStride;
    for (std::int64_t k = 0; k < numRows; ++k) {
      float value = 0.0F;
      const std::int64_t at = row * share.grid.fold + k;
      decodeFunction(operand.dtype)(&value, from + at * sizeBytes(operand.dtype), nullptr, 1);
      std::fill_n(strip + k * m_cols, copies, value);
    }
  }
}

/// Stores and clears the sums of a grid row's rows.
void StripEngine::storeRowSums(const Share& share, std::int64_t row) const {
  const std::int64_t numRows = share.grid.colsOf(row) / m_cols;
  for (std::size_t i = 0; i < m_rowSums.size(); ++i) {
    const StripOperand& operand = m_rowSums[i].operand;
    float* const sums = share.rowSums + static_cast<std::int64_t>(i) * kStripStride;
    std::byte* const to = share.pointers[static_cast<std::size_t>(operand.slot)];
    encodeFunction(operand.dtype)(to + row * share.grid.fold * sizeBytes(operand.dtype), sums, nullptr,
                                  static_cast<std::size_t>(numRows));
    std::fill_n(sums, numRows, 0.0F);
  }
}

/// The sums of rows without columns.
void StripEngine::clearSums(std::span<std::byte* const> pointers, std::int64_t rows) const {
  const auto clear = [&](const StripOperand& operand, std::int64_t count) {
    std::memset(pointers[static_cast<std::size_t>(operand.slot)], 0,
                static_cast<std::size_t>(count * sizeBytes(operand.dtype)));
  };
  for (const auto& [place, operand] : m_rowSums) clear(operand, rows);
  for (const auto& [place, operand] : m_columnSums)
    if (place.access == Access::Scalar) clear(operand, 1);
}

/// Asks for the operands of the next strip while this one is computed: a strip is read in one burst, too short for the
/// CPU to notice the stream and long enough to wait for memory.
void StripEngine::prefetchStrip(const Share& share, std::int64_t row, std::int64_t col, std::int64_t length) const {
  for (const int location : m_memory) {
    const Address& address = share.addresses[static_cast<std::size_t>(location)];
    const OperandPlace& place = m_locations[static_cast<std::size_t>(location)].place;
    // With interleaved lanes, each lane requests its part of the columns of all lanes.
    const std::byte* const first =
        address.at(row, place.interleave > 0 ? place.lanes * col + place.lane * length : col);
    const std::byte* const last = first + length * address.elementBytes;
    for (const std::byte* line = first; line < last; line += kLineBytes) __builtin_prefetch(line);
  }
}

void StripEngine::flushSums(const Share& share) const {
  for (std::size_t i = 0; i < share.blockSums.size(); ++i) share.totalSums[i] += share.blockSums[i];
  std::ranges::fill(share.blockSums, 0.0F);
}

StripEngine::Share StripEngine::shareOf(std::span<std::byte* const> pointers, const Grid& grid, const Scratch& scratch,
                                        int thread) const {
  const std::int64_t sums = numSums(grid);
  float* const block = scratch.sums + 2 * std::int64_t{thread} * sums;
  Share share{.pointers = pointers,
              .grid = grid,
              .scratch = scratch,
              .addresses = {},
              .columns = scratch.columns + thread * std::ssize(m_columns) * kStripStride,
              .rowSums = scratch.rowSums + thread * std::ssize(m_rowSums) * kStripStride,
              .blockSums = {block, static_cast<std::size_t>(sums)},
              .totalSums = {block + sums, static_cast<std::size_t>(sums)}};
  for (const Location& location : m_locations)
    share.addresses.push_back(addressOf(location, pointers, grid, scratch, thread));
  std::ranges::fill(share.blockSums, 0.0F);
  std::ranges::fill(share.totalSums, 0.0F);
  std::fill_n(share.rowSums, std::ssize(m_rowSums) * kStripStride, 0.0F);
  return share;
}

void StripEngine::moveScratchRows(Share& share, int thread, std::int64_t first) const {
  const auto& [slot, sink] = share.scratch.drain;
  if (!sink || sink->memory) return;
  std::byte* const rowZero = sink->rowZero(thread, first);
  for (std::size_t i = 0; i < m_locations.size(); ++i) {
    const Location& location = m_locations[i];
    if (location.kind != Location::Kind::Full || location.index != slot) continue;
    const std::int64_t laneStart = location.place.interleave > 0 ? 0 : location.place.lane * m_cols;
    share.addresses[i].base = rowZero + laneStart * location.elementBytes;
  }
}

void StripEngine::drainRows(Share& share, int thread, std::int64_t row) const {
  const RowSink* const sink = share.scratch.drain.sink;
  if (!sink || (row % sink->blockRows != 0 && row != share.grid.rows)) return;
  const std::int64_t first = (row - 1) / sink->blockRows * sink->blockRows;
  sink->finish(thread, share.scratch.firstRow + first, row - first);
  moveScratchRows(share, thread, row);
}

void StripEngine::runShare(Share share, int thread) const {
  const Grid& grid = share.grid;
  const std::int64_t first = grid.firstStrip(thread);
  const std::int64_t last = grid.firstStrip(thread + 1);
  std::int64_t row = first / grid.stripsPerRow;
  std::int64_t col = first % grid.stripsPerRow * grid.stripCols;
  std::int64_t rowsInBlock = 0;
  moveScratchRows(share, thread, row);
  for (std::int64_t strip = first; strip < last; ++strip) {
    const std::int64_t length = std::min(grid.stripCols, grid.colsOf(row) - col);
    if (strip == first || col == 0) loadColumns(share, row);
    const bool isLastOfRow = col + grid.stripCols >= grid.cols;
    if (grid.isPrefetched && strip + 1 < last)
      prefetchStrip(share, row + isLastOfRow, isLastOfRow ? 0 : col + grid.stripCols, length);
    if (length > 0) runStrip(share, row, col, static_cast<std::size_t>(length));
    col += grid.stripCols;
    if (col < grid.cols) continue;
    storeRowSums(share, row);
    col = 0;
    ++row;
    if (++rowsInBlock % kSumBlockRows == 0) flushSums(share);
    drainRows(share, thread, row);
  }
  flushSums(share);
}

void StripEngine::storeSums(std::span<std::byte* const> pointers, const Grid& grid, const Scratch& scratch) const {
  const std::int64_t numThreads = grid.rows == 0 ? 0 : grid.threads;
  std::vector<float> column(static_cast<std::size_t>(m_cols));
  for (std::size_t i = 0; i < m_columnSums.size(); ++i) {
    std::ranges::fill(column, 0.0F);
    for (std::int64_t part = 0; part < numThreads * grid.fold; ++part) {
      const std::int64_t thread = part / grid.fold;
      const float* const total = scratch.sums + (2 * thread + 1) * numSums(grid) +
                                 static_cast<std::int64_t>(i) * grid.cols + part % grid.fold * m_cols;
      for (std::size_t col = 0; col < column.size(); ++col) column[col] += total[col];
    }
    const OperandPlace& place = m_columnSums[i].place;
    const StripOperand& operand = m_columnSums[i].operand;
    std::byte* const to = pointers[static_cast<std::size_t>(operand.slot)];
    if (place.access == Access::Scalar) {
      const auto total = static_cast<float>(std::accumulate(column.begin(), column.end(), 0.0));
      encodeFunction(operand.dtype)(to, &total, nullptr, 1);
      continue;
    }
    forEachRun(place, 0, m_cols, [&](std::int64_t col, std::int64_t count) {
      encodeFunction(operand.dtype)(to + place.columnOf(col, m_cols) * sizeBytes(operand.dtype), column.data() + col,
                                    nullptr, static_cast<std::size_t>(count));
    });
  }
}

void StripEngine::run(std::span<std::byte* const> pointers, std::int64_t rows, std::byte* workspace,
                      std::int64_t firstRow, const Drain& drain) const {
  if (m_cols == 0) return clearSums(pointers, rows);
  const Grid grid = gridFor(rows, drain.sink ? drain.sink->blockRows : 0);
  Scratch scratch = layOut(workspace, grid);
  scratch.firstRow = firstRow;
  scratch.drain = drain;
  if (grid.rows > 0) {
    prepare(pointers, grid, scratch);
    if (grid.threads == 1) {
      runShare(shareOf(pointers, grid, scratch, 0), 0);
    } else {
#pragma omp parallel for num_threads(grid.threads) schedule(static, 1)
      for (int thread = 0; thread < grid.threads; ++thread) runShare(shareOf(pointers, grid, scratch, thread), thread);
    }
  }
  if (!m_columnSums.empty()) storeSums(pointers, grid, scratch);
}

}  // namespace fuseline::cpu
