// Binds programs to step operands, and chooses how they run.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise_step.h"
#include "core/runtime/step_operand.h"

#include "kernels/cuda/elementwise_launch.h"
#include "kernels/cuda/elementwise_program.h"
#include "kernels/cuda/elementwise_source.h"
#include "kernels/cuda/result_copies.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

struct GridSize {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// Every place that has an operand.
std::vector<Place> allPlaces(const DeviceProgram& program) {
  std::vector<Place> places = program.places;
  std::erase_if(places, [](const Place& place) { return place.operand == kNoOperand; });
  places.insert(places.end(), program.columnSums.begin(), program.columnSums.end());
  places.insert(places.end(), program.rowSums.begin(), program.rowSums.end());
  return places;
}

/// The grid is that of any full operand. A program without one only sums constants; no rows give the same zeros.
GridSize findGrid(const CompileRequest& request, const DeviceProgram& program) {
  GridSize grid;
  for (const Place& place : allPlaces(program)) {
    const TensorSpec spec = requireResult(request, place.operand)->spec;
    if (place.access == Access::Full) return {.rows = spec.rows(), .cols = spec.cols() / place.lanes};
    if (place.access == Access::Row) grid.cols = spec.numElements() / place.lanes;
    if (place.access == Access::Column) grid.rows = spec.numElements();
  }
  return grid;
}

/// Do rows follow each other without any element knowing in which row it is?
bool isContiguous(const DeviceProgram& program) {
  return program.columnSums.empty() && program.rowSums.empty() &&
         std::ranges::all_of(program.places, [](const Place& place) {
           return place.access == Access::Scalar || (place.access == Access::Full && place.lanes == 1);
         });
}

/// Does every operand keep kVectorWidth columns together, at an aligned address?
bool isVectorizable(const DeviceProgram& program, const GridSize& grid) {
  const bool isOneLane = std::ranges::all_of(program.places, [](const Place& place) { return place.lanes == 1; });
  if (grid.rows == 1 && isOneLane) return true;
  const auto keepsTogether = [](const Place& place) { return place.interleave % kVectorWidth == 0; };
  return grid.cols % kVectorWidth == 0 && std::ranges::all_of(program.places, keepsTogether);
}

ElementwiseShape shapeFor(const CompileRequest& request, const DeviceProgram& program) {
  GridSize grid = findGrid(request, program);
  if (isContiguous(program)) grid = {.rows = std::min<std::int64_t>(grid.rows, 1), .cols = grid.rows * grid.cols};
  return elementwiseShape(grid.rows, grid.cols, isVectorizable(program, grid), !program.columnSums.empty(),
                          request.device.numMultiprocessors);
}

/// Where the parts of a sum stand and where it goes.
struct Sum {
  Binding to;
  device::Operand operand;
};

/// A result of the program and the copies that are made of it.
struct CopiedResult {
  ResultCopies copies;
  int store = 0;
  int place = 0;  // among the program's
};

class ElementwiseKernel final : public Kernel {
 public:
  ElementwiseKernel(DeviceProgram program, std::optional<CopiedResult> copied, const CompileRequest& request)
      : m_program(std::move(program)),
        m_shape(shapeFor(request, m_program)),
        m_copied(std::move(copied)),
        m_device(request.device),
        m_stream(request.device.stream) {
    chooseCode(request);
    std::ranges::copy(m_program.program.dropouts, m_arguments.dropouts);
    for (const Place& place : m_program.places) m_operands.push_back(findOperand(request, place.operand));
    for (const Place& place : m_program.columnSums) m_columnSums.push_back(sumOf(request, place));
    for (const Place& place : m_program.rowSums) m_rowSums.push_back(sumOf(request, place));
  }

  std::size_t workspaceBytes() const override {
    return partsBytes() + (keepsResult() ? static_cast<std::size_t>(m_copied->copies.spec().bytes()) : 0);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    auto* const columnParts = reinterpret_cast<float*>(workspace);
    setOperands(pointers, workspace);
    if (hasElements()) launch(columnParts);
    for (std::size_t s = 0; s < m_columnSums.size(); ++s) finishColumns(s, pointers, columnParts);
    float* const rowParts = columnParts + numColumnParts(m_program.program, m_shape);
    for (std::size_t s = 0; s < m_rowSums.size(); ++s) finishRows(s, pointers, rowParts);
    if (m_copied && !m_isTiled)
      m_copied->copies.launchFrom(static_cast<const std::byte*>(resultOperand().data), pointers, m_device);
  }

 private:
  /// In tiles where there is a compiler and something to quantize; interpreted where there is no compiler.
  void chooseCode(const CompileRequest& request) {
    if (!request.device.programs || !hasElements()) return;
    if (m_copied && m_copied->copies.fitsKernel()) {
      const TiledResult tiles{.store = m_copied->store, .kind = m_copied->copies.kind()};
      m_compiled = compiled(*request.device.programs, sourceOf(m_program.program, kVectorWidth, &tiles));
      m_isTiled = m_compiled != nullptr;
    }
    if (m_isTiled)
      m_shape = tileShape(m_copied->copies.spec().rows(), m_copied->copies.spec().cols());
    else
      m_compiled = compiled(*request.device.programs, sourceOf(m_program.program, m_shape.vector));
  }

  /// Null where the compiler refuses.
  static std::shared_ptr<const CompiledProgram> compiled(ProgramCompiler& compiler, const std::string& source) {
    auto made = compiler.compile(source);
    return made ? *made : nullptr;
  }

  std::size_t partsBytes() const {
    constexpr std::size_t kAlignment = 256;
    const std::int64_t parts = numColumnParts(m_program.program, m_shape) + numRowParts(m_program.program, m_shape);
    return (static_cast<std::size_t>(parts) * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  }

  device::Operand& resultOperand() { return m_program.program.operands[m_copied->place]; }
  /// Is there a result that is only quantized, by kernels that read it?
  bool keepsResult() const { return m_copied && !m_isTiled && !m_operands[static_cast<std::size_t>(m_copied->place)]; }

  void setOperands(Pointers pointers, std::byte* workspace) {
    for (std::size_t i = 0; i < m_operands.size(); ++i) m_program.program.operands[i].data = m_operands[i].at(pointers);
    if (keepsResult()) resultOperand().data = workspace + partsBytes();
    for (std::size_t i = 0; i < m_operands.size(); ++i) m_arguments.data[i] = m_program.program.operands[i].data;
    if (m_isTiled) m_arguments.handOver = m_copied->copies.at(pointers);
  }

  void launch(float* columnParts) const {
    float* const rowParts = columnParts + numColumnParts(m_program.program, m_shape);
    if (m_compiled) return m_compiled->launch(m_arguments, m_shape, columnParts, rowParts, m_stream);
    launchProgram(m_program.program, m_shape, columnParts, m_stream);
  }

  static Sum sumOf(const CompileRequest& request, const Place& place) {
    const Binding to = findOperand(request, place.operand);
    return {.to = to,
            .operand = {.interleave = place.interleave,
                        .element = elementOf(to.spec.dtype),
                        .access = static_cast<device::Access>(place.access),
                        .lane = static_cast<std::uint8_t>(place.lane),
                        .lanes = static_cast<std::uint8_t>(place.lanes)}};
  }

  bool hasElements() const { return m_shape.grid.rows > 0 && m_shape.grid.cols > 0; }

  static device::Operand at(const Sum& sum, Pointers pointers) {
    device::Operand operand = sum.operand;
    operand.data = sum.to.at(pointers);
    return operand;
  }

  void finishColumns(std::size_t s, Pointers pointers, const float* parts) const {
    const Sum& sum = m_columnSums[s];
    if (!sum.to.at(pointers)) return;
    const std::int64_t cols = m_shape.grid.cols;
    const std::int64_t blocks = hasElements() ? m_shape.blocksY : 0;
    PartSums sums{.parts = parts + static_cast<std::int64_t>(s) * m_shape.blocksY * cols,
                  .items = cols,
                  .terms = blocks,
                  .termStride = cols,
                  .to = at(sum, pointers),
                  .cols = cols};
    if (sum.operand.access == device::Access::Scalar) {
      sums.items = 1;
      sums.terms = blocks * cols;
      sums.termStride = 1;
    }
    launchPartSums(sums, m_stream);
  }

  void finishRows(std::size_t s, Pointers pointers, const float* parts) const {
    const Sum& sum = m_rowSums[s];
    if (!sum.to.at(pointers)) return;
    const std::int64_t rows = m_shape.grid.rows;
    const std::int64_t groups = m_shape.rowGroups();
    launchPartSums({.parts = parts + static_cast<std::int64_t>(s) * rows * groups,
                    .items = rows,
                    .itemStride = groups,
                    .terms = hasElements() ? groups : 0,
                    .to = at(sum, pointers),
                    .cols = rows},
                   m_stream);
  }

  DeviceProgram m_program;
  ElementwiseShape m_shape;
  std::optional<CopiedResult> m_copied;
  bool m_isTiled = false;
  const DeviceContext& m_device;
  Stream m_stream;
  device::Arguments m_arguments = {};
  std::shared_ptr<const CompiledProgram> m_compiled;
  std::vector<Binding> m_operands;
  std::vector<Sum> m_columnSums;
  std::vector<Sum> m_rowSums;
};

Result<void> requireOperands(const CompileRequest& request, const DeviceProgram& program) {
  for (const Place& place : allPlaces(program))
    if (const Result<Binding> binding = requireResult(request, place.operand); !binding) return binding.error();
  return {};
}

/// Which store makes the tensor; nothing: none does row by row, one value an element.
std::optional<int> storeOf(const DeviceProgram& program, const OperandKey& tensor) {
  for (int store = 0; store < program.program.numStores; ++store) {
    const Place& place = program.places[program.program.stores[store].operand];
    if (place.operand == tensor && place.access == Access::Full && place.lanes == 1) return store;
  }
  return std::nullopt;
}

Result<std::optional<CopiedResult>> copiedResultOf(const CompileRequest& request, const DeviceProgram& program) {
  if (request.step.copies.empty()) return std::optional<CopiedResult>();
  Result<ResultCopies> copies = ResultCopies::make(request);
  if (!copies) return copies.error();
  if (const std::optional<int> store = storeOf(program, copies->source()))
    return std::optional(
        CopiedResult{std::move(*copies), *store, program.program.stores[static_cast<std::size_t>(*store)].operand});
  return Error{fmt::format("Step \"{}\" quantizes a result that it does not make row by row.", request.step.name),
               ErrorKind::RunFailed};
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeElementwiseKernel(const CompileRequest& request,
                                                      const ElementwiseProgram& program) {
  const auto dtypeOf = [&](const OperandKey& key) {
    const Result<Binding> binding = requireResult(request, key);
    return binding ? binding->spec.dtype : DType::F32;
  };
  Result<DeviceProgram> compiled = compileProgram(program, dtypeOf);
  if (!compiled) return compiled.error();
  if (Result<void> there = requireOperands(request, *compiled); !there) return there.error();
  Result<std::optional<CopiedResult>> copied = copiedResultOf(request, *compiled);
  if (!copied) return copied.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<ElementwiseKernel>(std::move(*compiled), std::move(*copied), request));
}

Verdict areElementwise(const Graph& graph, std::span<const NodeId> members) {
  for (const NodeId id : members) {
    const Node& node = graph.node(id);
    if (!node.operation->isElementwise())
      return Verdict::no(
          fmt::format("{} \"{}\" is not an elementwise op, so the GPU's elementwise kernel cannot run "
                      "it.",
                      node.operation->name, node.id));
  }
  return Verdict::yes();
}

}  // namespace fuseline::cuda
