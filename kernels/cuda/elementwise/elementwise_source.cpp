// Writes one statement an instruction.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_source.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cuda {

namespace {

using device::Instruction;
using device::Opcode;
using device::Operand;
using device::Program;

const char* nameOf(device::Element element) {
  if (element == device::Element::F16) return "F16";
  return element == device::Element::BF16 ? "BF16" : "F32";
}

const char* nameOf(device::Access access) {
  constexpr const char* kNames[] = {"Full", "Row", "Column", "Scalar"};
  return kNames[static_cast<int>(access)];
}

/// The bits of a constant: decimal text would be rounded a second time.
std::string constantText(float value) {
  return fmt::format("std::bit_cast<float>(0x{:08x}u)", std::bit_cast<std::uint32_t>(value));
}

/// The value of an instruction for lane v, from its operands a and b.
std::string expression(Opcode opcode, const std::string& a, const std::string& b) {
  switch (opcode) {
    case Opcode::Add: return a + " + " + b;
    case Opcode::Sub: return a + " - " + b;
    case Opcode::Mul: return a + " * " + b;
    case Opcode::Div: return a + " / " + b;
    case Opcode::Max: return "maximum(" + a + ", " + b + ")";
    case Opcode::Min: return "minimum(" + a + ", " + b + ")";
    case Opcode::Less: return "less(" + a + ", " + b + ")";
    case Opcode::Neg: return "-" + a;
    case Opcode::Exp: return "expf(" + a + ")";
    case Opcode::Log: return "logf(" + a + ")";
    case Opcode::Sqrt: return "sqrtf(" + a + ")";
    case Opcode::Rsqrt: return "1.0f / sqrtf(" + a + ")";
    case Opcode::Tanh: return "tanhf(" + a + ")";
    case Opcode::Erf: return "erff(" + a + ")";
    case Opcode::Sigmoid: return "sigmoid(" + a + ")";
    case Opcode::Gelu: return "gelu(" + a + ")";
    case Opcode::GeluGrad: return "geluGrad(" + a + ")";
    case Opcode::ExactGelu: return "exactGelu(" + a + ")";
    case Opcode::ExactGeluGrad: return "exactGeluGrad(" + a + ")";
    case Opcode::Silu: return "silu(" + a + ")";
    case Opcode::SiluGrad: return "siluGrad(" + a + ")";
    case Opcode::Load:
    case Opcode::Constant:
    case Opcode::Dropout: break;
  }
  return "";
}

/// Do its elements differ from row to row? Such operands are requested before anything waits; the others stay in the
/// cache.
bool isRequested(const Operand& operand) { return operand.access == device::Access::Full; }

std::string statement(const Program& program, const Instruction& instruction) {
  const int out = instruction.out;
  switch (instruction.opcode) {
    case Opcode::Load:
      if (isRequested(program.operands[instruction.operand]))
        return fmt::format("loads.l{}.take(r{});", instruction.operand, out);
      return fmt::format("loadOperand<kVector, kIsShifted>(o{}, grid, at, r{});", instruction.operand, out);
    case Opcode::Constant: return fmt::format("fill<kVector>({}, r{});", constantText(instruction.constant), out);
    case Opcode::Dropout:
      return fmt::format("drop<kVector>(arguments.dropouts[{}], {}, indexOf(o{}, grid, at), r{});", instruction.dropout,
                         constantText(instruction.constant), instruction.operand, out);
    default: break;
  }
  const std::string a = fmt::format("r{}[v]", instruction.a);
  const std::string b = fmt::format("r{}[v]", instruction.b);
  return fmt::format("for (int v = 0; v < kVector; ++v) r{}[v] = {};", out, expression(instruction.opcode, a, b));
}

std::string declaration(const Operand& operand, int index) {
  return fmt::format(
      "[[maybe_unused]] const Operand o{0}{{arguments.data[{0}], {1}, Element::{2}, Access::{3}, {4}, {5}}};", index,
      operand.interleave, nameOf(operand.element), nameOf(operand.access), operand.lane, operand.lanes);
}

std::string sumText(int value, int slot) {
  return fmt::format("for (int v = 0; v < kVector; ++v) sums[{}][v] = r{}[v];", slot, value);
}

/// Which lane of the result that is quantized; -1: none.
int laneOf(const HandedResult* tiles, int store) {
  if (!tiles) return -1;
  const auto lane = std::ranges::find(tiles->stores, store);
  return lane == tiles->stores.end() ? -1 : static_cast<int>(lane - tiles->stores.begin());
}

int numRegisters(std::span<const Instruction> code) {
  int registers = 0;
  for (const Instruction& instruction : code) registers = std::max(registers, instruction.out + 1);
  return registers;
}

std::span<const Instruction> codeOf(const Program& program) {
  return {program.code, static_cast<std::size_t>(program.numInstructions)};
}

std::vector<std::string> declarations(const Program& program) {
  std::vector<std::string> lines;
  for (int i = 0; i < program.numOperands; ++i) lines.push_back(declaration(program.operands[i], i));
  return lines;
}

/// Operands that are requested before the computation starts.
std::set<int> requestedOperands(const Program& program) {
  std::set<int> operands;
  for (const Instruction& instruction : codeOf(program))
    if (instruction.opcode == Opcode::Load && isRequested(program.operands[instruction.operand]))
      operands.insert(instruction.operand);
  return operands;
}

std::vector<std::string> loadMembers(const Program& program) {
  std::vector<std::string> lines;
  for (const int operand : requestedOperands(program))
    lines.push_back(fmt::format("LoadedOperand<Element::{}, kVector, kIsShifted> l{};",
                                nameOf(program.operands[operand].element), operand));
  return lines;
}

std::vector<std::string> requests(const Program& program) {
  std::vector<std::string> lines = declarations(program);
  for (const int operand : requestedOperands(program))
    lines.push_back(fmt::format("loads.l{0}.request(o{0}, grid, at);", operand));
  return lines;
}

std::vector<std::string> computation(const Program& program) {
  std::vector<std::string> lines = declarations(program);
  for (int i = 0; i < numRegisters(codeOf(program)); ++i) lines.push_back(fmt::format("float r{}[kVector];", i));
  for (const Instruction& instruction : codeOf(program)) lines.push_back(statement(program, instruction));
  return lines;
}

/// The values of the lanes that are quantized.
std::vector<std::string> handing(const Program& program, const HandedResult* tiles) {
  std::vector<std::string> lines;
  for (int i = 0; i < program.numStores; ++i)
    if (const int lane = laneOf(tiles, i); lane >= 0)
      lines.push_back(
          fmt::format("for (int v = 0; v < kVector; ++v) handed[{}][v] = r{}[v];", lane, program.stores[i].value));
  return lines;
}

std::vector<std::string> results(const Program& program, const HandedResult* tiles) {
  std::vector<std::string> lines;
  for (int i = 0; i < program.numStores; ++i) {
    const auto [value, operand] = program.stores[i];
    if (laneOf(tiles, i) < 0 || tiles->isWritten)
      lines.push_back(fmt::format("storeOperand<kVector, kIsShifted>(o{}, grid, at, r{});", operand, value));
  }
  for (int s = 0; s < program.numColumnSums; ++s) lines.push_back(sumText(program.columnSums[s].value, s));
  for (int s = 0; s < program.numRowSums; ++s)
    lines.push_back(sumText(program.rowSums[s].value, program.numColumnSums + s));
  return lines;
}

std::string indented(const std::vector<std::string>& lines) {
  return lines.empty() ? "" : fmt::format("    {}\n", fmt::join(lines, "\n    "));
}

/// The lines of evaluate(). Stores come last: an operand may be overwritten in place.
std::string body(const Program& program, const HandedResult* tiles) {
  return indented(computation(program)) + indented(handing(program, tiles)) + indented(results(program, tiles));
}

/// The lines of evaluate() that find the largest magnitude of a result, or of an input as it was loaded.
std::string measuring(const Program& program, const HandedResult& handed) {
  std::string lines;
  for (const int load : handed.loads)
    lines += fmt::format(
        "    float x{0}[kVector];\n    loads.l{0}.take(x{0});\n"
        "    largest = largestMagnitude<kVector>(Element::F32, x{0}, at.count, largest, at.skipped);\n",
        load);
  for (const int store : handed.stores) {
    const auto [value, operand] = program.stores[store];
    lines += fmt::format("    largest = largestMagnitude<kVector>(Element::{}, r{}, at.count, largest, at.skipped);\n",
                         handed.isUnrounded ? "F32" : nameOf(program.operands[operand].element), value);
  }
  return lines;
}

constexpr const char* kRaiseAmax =
    "\n  raiseAmax(arguments.quantizedOutputs.pairs[0].amax, evaluator.largest, threadIdx.y * blockDim.x + "
    "threadIdx.x);";

/// {0}: vector width, {1}: column sums, {2}: row sums, {3}: all sums but at least one, {4}: body, {5}: name of the
/// kernel, {6}: its loop, {7}: lanes of the quantized result, {8}: further arguments of evaluate(), {9}: further state,
/// {10}: loaded operands, {11}: how they are loaded, {12}: further launch bounds, {13}: are rows shifted?
constexpr const char* kTemplate = R"(#include "kernels/cuda/device/generated.h"

namespace {{

using namespace fuseline::cuda::device;

constexpr int kVector = {0};
constexpr bool kIsShifted = {13};

struct Evaluator {{
  static constexpr int kMaxColumnSums = {1};
  static constexpr int kLanes = {7};
  struct Loads {{
{10}  }};
  const Arguments& arguments;
  float sums[{3}][kVector];{9}

  __device__ int numColumnSums() const {{ return {1}; }}
  __device__ int numRowSums() const {{ return {2}; }}
  __device__ const float (&columnSum(int s) const)[kVector] {{ return sums[s]; }}
  __device__ const float (&rowSum(int s) const)[kVector] {{ return sums[{1} + s]; }}

  __device__ void request([[maybe_unused]] const Grid& grid, [[maybe_unused]] const Position& at,
                          [[maybe_unused]] Loads& loads) const {{
{11}  }}
  __device__ void evaluate([[maybe_unused]] const Grid& grid, [[maybe_unused]] const Position& at,
                           [[maybe_unused]] const Loads& loads{8}) {{
{4}  }}
}};

}}  // namespace

extern "C" __global__ void __launch_bounds__(kBlockThreads{12})
    {5}(const __grid_constant__ Arguments arguments, Grid grid, float* columnParts, float* rowParts) {{
  Evaluator evaluator{{arguments, {{}}}};
  {6}
}}
)";

const char* nameOf(device::CopyKind kind) {
  constexpr const char* kNames[] = {"Tensor", "Float8Line", "Float8Square", "MxLine", "MxSquare"};
  return kNames[static_cast<int>(kind)];
}

std::string walkText(const Program& program, const HandedResult* tiles) {
  if (!tiles) return "walkGrid<Evaluator, kVector, kIsShifted>(evaluator, grid, columnParts, rowParts);";
  const Operand& result = program.operands[program.stores[tiles->stores.front()].operand];
  return fmt::format(
      "walkTiles<CopyKind::{}, Element::{}>(evaluator, grid, arguments.quantizedOutputs, columnParts, rowParts);",
      nameOf(*tiles->kind), nameOf(result.element));
}

/// How many blocks a multiprocessor is to run at once, where a result is quantized.
const char* boundText(const Program& program, const HandedResult* tiles) {
  if (!tiles) return "";
  const Operand& result = program.operands[program.stores[tiles->stores.front()].operand];
  const bool isNarrow = tiles->stores.size() == 1 && result.element != device::Element::F32;
  return isNarrow ? ", kNarrowTileBlocksAtOnce" : ", kTileBlocksAtOnce";
}

}  // namespace

std::string sourceOf(const Program& program, const ElementwiseShape& shape, const HandedResult* handed) {
  const bool isAmaxOnly = handed && !handed->kind;
  const HandedResult* const tiles = isAmaxOnly ? nullptr : handed;
  const int sums = std::max(1, program.numColumnSums + program.numRowSums);
  const std::string measured = isAmaxOnly ? measuring(program, *handed) : "";
  return fmt::format(
      kTemplate, shape.vector, program.numColumnSums, program.numRowSums, sums, body(program, tiles) + measured,
      kGeneratedKernel, walkText(program, tiles) + (isAmaxOnly ? kRaiseAmax : ""), tiles ? tiles->stores.size() : 1,
      tiles ? ", float (&handed)[kLanes][kVector]" : "", isAmaxOnly ? "\n  float largest = 0.0f;" : "",
      indented(loadMembers(program)), indented(requests(program)), boundText(program, tiles), shape.isShifted);
}

}  // namespace fuseline::cuda
