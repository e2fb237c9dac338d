// Binds programs to step operands, and chooses how they run.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/elementwise_step.h"

#include "kernels/cuda/elementwise/program_runner.h"
#include "kernels/cuda/quantize/step_copies.h"
#include "kernels/cuda/support/workspace.h"

#include <algorithm>
#include <optional>

namespace fuseline::cuda {

namespace {

/// Every place that has an operand.
std::vector<OperandPlace> allPlaces(const DeviceProgram& program) {
  std::vector<OperandPlace> places = program.places;
  std::erase_if(places, [](const OperandPlace& place) { return place.operand == kNoOperand; });
  places.insert(places.end(), program.columnSums.begin(), program.columnSums.end());
  places.insert(places.end(), program.rowSums.begin(), program.rowSums.end());
  return places;
}

/// Also checks that all operands are there.
Result<GridSize> requireGrid(const CompileRequest& request, const DeviceProgram& program) {
  const std::vector<OperandPlace> places = allPlaces(program);
  for (const OperandPlace& place : places)
    if (const Result<Binding> binding = requireResult(request, place.operand); !binding) return binding.error();
  return findGrid(request, places);
}

/// A result of the program and its quantized tensors, or its amax.
struct CopiedResult {
  StepCopies copies;
  std::vector<int> stores;          // by lane of the result
  std::vector<std::size_t> places;  // where they go, among the program's
};

/// How a program runs, and whether it quantizes, or finds the amax, itself.
struct ProgramRun {
  ProgramRunner runner;
  ElementwiseShape shape;
  bool isHandingOver = false;
};

class ElementwiseKernel final : public Kernel {
 public:
  ElementwiseKernel(ProgramRun run, std::optional<CopiedResult> copied, const CompileRequest& request)
      : m_run(std::move(run)), m_copied(std::move(copied)), m_device(request.device) {
    for (const OperandKey& key : m_run.runner.operands()) m_bindings.push_back(findOperand(request, key));
    m_memory.resize(m_bindings.size());
  }

  std::size_t workspaceBytes() const override {
    return partsBytes() + (keepsResult() ? static_cast<std::size_t>(m_copied->copies.spec().bytes()) : 0);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    std::ranges::transform(m_bindings, m_memory.begin(), [&](const Binding& binding) { return binding.at(pointers); });
    if (keepsResult())
      for (const std::size_t place : m_copied->places) m_memory[place] = workspace + partsBytes();
    if (m_run.isHandingOver) prepare(pointers);
    m_run.runner.run(m_run.shape, m_memory, workspace, m_device.stream);
    if (m_copied && !m_run.isHandingOver)
      m_copied->copies.launchFrom(m_memory[m_copied->places.front()], pointers, m_device);
  }

 private:
  void prepare(Pointers pointers) {
    m_run.runner.setQuantizedOutputs(m_copied->copies.at(pointers));
    if (m_copied->copies.isAmaxOnly()) m_copied->copies.clearedAmax(pointers, m_device);
  }

  std::size_t partsBytes() const { return workspacePart(m_run.runner.workspaceBytes(m_run.shape)); }

  /// Is there a result that is only quantized, by kernels that read it?
  bool keepsResult() const { return m_copied && !m_run.isHandingOver && !m_bindings[m_copied->places.front()]; }

  ProgramRun m_run;
  std::optional<CopiedResult> m_copied;
  const DeviceContext& m_device;
  std::vector<Binding> m_bindings;
  std::vector<std::byte*> m_memory;  // of the bindings, in one call
};

const OperandPlace& placeOf(const DeviceProgram& program, int store) {
  return program.places[program.program.stores[store].operand];
}

/// Which stores make the tensor, by lane; none where it is not made row by row.
std::vector<int> storesOf(const DeviceProgram& program, const OperandKey& tensor) {
  std::vector<int> stores;
  for (int store = 0; store < program.program.numStores; ++store) {
    const OperandPlace& place = placeOf(program, store);
    if (place.operand == tensor && place.access == Access::Full) stores.push_back(store);
  }
  std::ranges::sort(stores, {}, [&](int store) { return placeOf(program, store).lane; });
  return stores;
}

Result<std::optional<CopiedResult>> copiedResultOf(const CompileRequest& request, const DeviceProgram& program) {
  if (request.step.copies.empty()) return std::optional<CopiedResult>();
  Result<StepCopies> copies = StepCopies::make(request);
  if (!copies) return copies.error();
  const std::vector<int> stores = storesOf(program, copies->source());
  CopiedResult result{std::move(*copies), stores, {}};
  if (result.stores.empty()) return notMadeByRows(request.step);
  for (const int store : result.stores) result.places.push_back(program.program.stores[store].operand);
  return std::optional(std::move(result));
}

DType dtypeOf(const CompileRequest& request, const OperandKey& key) {
  const Result<Binding> binding = requireResult(request, key);
  return binding ? binding->spec.dtype : DType::F32;
}

/// Copies take tiles, an amax does not.
ElementwiseShape handingShape(const CompileRequest& request, const DeviceProgram& program, const CopiedResult& copied,
                              int blocksAtOnce = DeviceFill::kBlocksWithSums) {
  const TensorSpec& spec = copied.copies.spec();
  const GridSize grid{spec.rows(), spec.cols() / static_cast<std::int64_t>(copied.stores.size())};
  if (copied.copies.isAmaxOnly())
    return programShape(program, grid, request.device.numMultiprocessors,
                        {.findsAmax = true, .blocksAtOnce = blocksAtOnce});
  return tileShape(grid.rows, grid.cols, copied.stores.size() * copied.copies.waitingBytes());
}

HandedResult handedResult(const CompileRequest& request, const CopiedResult& copied) {
  HandedResult handed{.stores = copied.stores, .isUnrounded = request.step.copies.front().isUnrounded};
  if (copied.copies.isAmaxOnly()) return handed;
  handed.kind = copied.copies.kind();
  handed.isWritten = bool(findOperand(request, copied.copies.source()));
  return handed;
}

/// Does a block have the shared memory? Tiles of two lanes in float32 take more than some GPUs have.
bool fitsBlock(const CompileRequest& request, const DeviceProgram& program, const CopiedResult& copied) {
  const std::size_t bytes = handingShape(request, program, copied).sharedBytes;
  return bytes == 0 || bytes + kTileDeclaredBytes <= request.device.maxSharedBytes;
}

/// The program produces the quantized output itself where there is a compiler.
ProgramRun chooseRun(const CompileRequest& request, const DeviceProgram& program, const GridSize& grid,
                     const std::optional<CopiedResult>& copied) {
  const auto dtype = [&](const OperandKey& key) { return dtypeOf(request, key); };
  if (copied && copied->copies.fitsKernel() && fitsBlock(request, program, *copied)) {
    const HandedResult handed = handedResult(request, *copied);
    const ElementwiseShape shape = handingShape(request, program, *copied);
    ProgramRunner runner(program, shape, dtype, request.device, &handed);
    if (runner.isCompiled()) {
      const int blocksAtOnce = runner.blocksAtOnce();
      return {std::move(runner), handingShape(request, program, *copied, blocksAtOnce), true};
    }
  }
  const ElementwiseShape shape = programShape(program, grid, request.device.numMultiprocessors);
  return {ProgramRunner(program, shape, dtype, request.device), shape};
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeElementwiseKernel(const CompileRequest& request,
                                                      const ElementwiseProgram& program) {
  const Result<DeviceProgram> compiled =
      compileProgram(program, [&](const OperandKey& key) { return dtypeOf(request, key); });
  if (!compiled) return compiled.error();
  const Result<GridSize> grid = requireGrid(request, *compiled);
  if (!grid) return grid.error();
  Result<std::optional<CopiedResult>> copied = copiedResultOf(request, *compiled);
  if (!copied) return copied.error();
  ProgramRun run = chooseRun(request, *compiled, *grid, *copied);
  return std::unique_ptr<Kernel>(std::make_unique<ElementwiseKernel>(std::move(run), std::move(*copied), request));
}

Verdict areElementwise(const Graph& graph, std::span<const NodeId> members) {
  return fuseline::areElementwise(graph, members, "the GPU's elementwise kernel");
}

}  // namespace fuseline::cuda
