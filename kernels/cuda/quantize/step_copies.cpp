// Binds quantized tensors to operands, selects the kernel that can produce them, and quantizes tensors and groups.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize/step_copies.h"

#include "core/quant/cuda_quantizers.h"
#include "core/tensor/grouped_copy.h"
#include "core/tensor/scaling.h"
#include "kernels/common/grouped_linear_step.h"
#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/quantize/block_quantize_launch.h"
#include "kernels/cuda/quantize/coded_copy.h"
#include "kernels/cuda/quantize/nvfp4_launch.h"
#include "kernels/cuda/quantize/quantize_launch.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

std::byte* memoryAt(Pointers pointers, int index) { return pointers[static_cast<std::size_t>(index)]; }

template <class T>
T* floatsAt(Pointers pointers, int index) {
  return index < 0 ? nullptr : reinterpret_cast<T*>(pointers[static_cast<std::size_t>(index)]);
}

/// How often the result has the columns that the kernel walks over: before a gated op twice.
std::int64_t lanesOf(const KernelQuery& query) {
  const Node& last = query.graph.node(query.members.back());
  const std::int64_t cols = query.graph.value(last.outputs.front()).spec.cols();
  return cols > 0 ? query.copies->spec.cols() / cols : 1;
}

/// Interleave size of the gated op among the members; 0: its halves are contiguous.
std::int64_t interleaveOf(const KernelQuery& query) {
  constexpr const char* kInterleave = "glu_interleave_size";
  for (const NodeId id : query.members) {
    const Attributes& attributes = query.graph.node(id).attributes;
    if (attributes.has(kInterleave)) return attributes.integer(kInterleave);
  }
  return 0;
}

/// Columns that a thread reads together, and that have a scale together.
std::int64_t columnsTogether(const TensorQuantizers& quantizers) {
  return std::max<std::int64_t>(traitsOf(scalingOf(quantizers)).block.cols, kVectorWidth);
}

/// The halves of a result are adjacent, and each begins a block.
Verdict canMakeHalves(const KernelQuery& query) {
  if (interleaveOf(query) != 0)
    return Verdict::no("The CUDA backend cannot quantize interleaved gated outputs in the producing kernel.");
  const std::int64_t cols = query.copies->spec.cols() / 2;
  const std::int64_t together = columnsTogether(query.copies->quantizers);
  if (cols % together == 0) return Verdict::yes();
  return Verdict::no(
      fmt::format("The CUDA backend quantizes both halves of a gated output in the producing kernel if each has a "
                  "multiple of {} columns; these have {}.",
                  together, cols));
}

}  // namespace

Scaling scalingOf(const TensorQuantizers& quantizers) {
  return (quantizers.rowwise ? quantizers.rowwise : quantizers.columnwise)->scaling;
}

bool areOfRows(const TensorQuantizers& quantizers) {
  const auto& [rowwise, columnwise, isDequantized] = quantizers;
  if (!rowwise || traitsOf(rowwise->scaling).block.rows > 1 || isNvfp4(rowwise->scaling)) return false;
  return !columnwise || (rowwise->scaling == Scaling::PerTensor && columnwise == rowwise);
}

Verdict canMakeCopies(const KernelQuery& query) {
  if (query.copies->isAmaxOnly()) return Verdict::yes();
  if (const Verdict fits = isQuantizedByCuda(query.copies->quantizers); !fits) return fits;
  if (isNvfp4(scalingOf(query.copies->quantizers)))
    return Verdict::no(
        "The CUDA backend quantizes to NVFP4 in a separate step, because block scales depend on the amax of the whole "
        "tensor.");
  if (lanesOf(query) > 1) return canMakeHalves(query);
  if (interleaveOf(query) % kVectorWidth == 0 && query.copies->spec.cols() % kVectorWidth == 0) return Verdict::yes();
  return Verdict::no(fmt::format(
      "The CUDA backend quantizes multiples of {} columns in the producing kernel, which this tensor does not have.",
      kVectorWidth));
}

StepCopies::StepCopies(const CompileRequest& request)
    : m_graph(&request.graph), m_plan(&request.plan), m_step(&request.step) {
  for (const QuantizeWork& work : m_step->copies) m_operands.emplace_back(*m_step, work);
  const int sizes = m_operands.front().sizes;
  m_hasFixedSizes = sizes < 0 || isSameInEveryRun(*m_plan, *m_step, sizes);
  if (isAmaxOnly())
    m_amaxes = StepAmaxes(request, 0);
  else if (findsAmaxes())
    m_amaxes = StepAmaxes(request, m_operands.size() * std::max<std::size_t>(numGroups(), 1));
}

/// Neither a scale nor an amax is known beforehand.
bool StepCopies::findsAmaxes() const {
  const QuantizeOperands& operands = m_operands.front();
  return scalingOf(m_step->copies.front().quantizers) == Scaling::PerTensor && operands.scale < 0 &&
         operands.knownAmax < 0;
}

Result<StepCopies> StepCopies::make(const CompileRequest& request) {
  const std::vector<QuantizeWork>& works = request.step.copies;
  if (works.front().isAmaxOnly()) return StepCopies(request);
  for (const QuantizeWork& work : works)
    if (const Verdict fits = isQuantizedByCuda(work.quantizers); !fits)
      return Error{fits.reason(), ErrorKind::RunFailed};
  const Scaling scaling = scalingOf(works.front().quantizers);
  const bool isSame =
      std::ranges::all_of(works, [&](const QuantizeWork& work) { return scalingOf(work.quantizers) == scaling; });
  if (isSame) return StepCopies(request);
  return Error{fmt::format("Step \"{}\" quantizes with several scalings, which the GPU's kernel does not support.",
                           request.step.name),
               ErrorKind::RunFailed};
}

Result<std::optional<StepCopies>> StepCopies::ifAny(const CompileRequest& request) {
  if (request.step.copies.empty()) return std::optional<StepCopies>();
  Result<StepCopies> copies = make(request);
  if (!copies) return copies.error();
  return std::optional(std::move(*copies));
}

device::CopyKind StepCopies::kind() const { return copyKindOf(scalingOf(m_step->copies.front().quantizers)); }

ElementFormat StepCopies::format() const {
  const TensorQuantizers& quantizers = m_step->copies.front().quantizers;
  return (quantizers.rowwise ? quantizers.rowwise : quantizers.columnwise)->format;
}

const TensorSpec& StepCopies::specAt(int operand) const {
  return m_plan->spec(m_step->operands[static_cast<std::size_t>(operand)]);
}

StepCopies::PieceCopy StepCopies::copyAt(const std::optional<QuantizerSpec>& quantizer, int operand,
                                         Pointers pointers) const {
  if (operand < 0 || !quantizer) return {};
  return {*quantizer, specAt(operand), memoryAt(pointers, operand)};
}

device::CodedCopy StepCopies::coded(const PieceCopy& copy) const {
  if (!copy.memory) return {};
  device::CodedCopy made = codedCopyOf(copy.spec, copy.memory);
  made.rule = scaleRuleOf(copy.quantizer, spec().dtype);
  return made;
}

device::CopyPair StepCopies::pairAt(std::size_t index, Pointers pointers) const {
  const QuantizeOperands& operands = m_operands[index];
  const TensorQuantizers& quantizers = m_step->copies[index].quantizers;
  return {.rowwise = coded(copyAt(quantizers.rowwise, operands.rowwise, pointers)),
          .columnwise = coded(copyAt(quantizers.columnwise, operands.columnwise, pointers)),
          .scale = floatsAt<const float>(pointers, operands.scale),
          .amax = floatsAt<float>(pointers, isAmaxOnly() ? operands.foundAmax : operands.history)};
}

float* StepCopies::clearedAmax(Pointers pointers, const DeviceContext& device) const {
  float* const amax = floatsAt<float>(pointers, m_operands.front().foundAmax);
  return m_operands.front().raisesFoundAmax ? amax : m_amaxes.cleared(amax, device.stream);
}

device::QuantizedOutputs StepCopies::at(Pointers pointers) const {
  device::QuantizedOutputs quantizedOutputs{.numPairs = static_cast<int>(m_operands.size()),
                                            .isUnrounded = m_step->copies.front().isUnrounded};
  if (!isAmaxOnly()) quantizedOutputs.kind = kind();
  for (std::size_t i = 0; i < m_operands.size(); ++i) quantizedOutputs.pairs[i] = pairAt(i, pointers);
  return quantizedOutputs;
}

/// A quantized tensor that is not requested may still have a quantizer.
bool StepCopies::areOfRows() const {
  if (!fitsKernel()) return false;
  for (std::size_t i = 0; i < m_operands.size(); ++i) {
    TensorQuantizers wanted = m_step->copies[i].quantizers;
    if (m_operands[i].rowwise < 0) wanted.rowwise.reset();
    if (m_operands[i].columnwise < 0) wanted.columnwise.reset();
    if (!cuda::areOfRows(wanted)) return false;
  }
  return true;
}

bool StepCopies::hasColumns() const {
  return std::ranges::any_of(m_operands, [](const QuantizeOperands& operands) { return operands.columnwise >= 0; });
}

void StepCopies::launchTransposes(Pointers pointers, const DeviceContext& device) const {
  for (std::size_t i = 0; i < m_operands.size(); ++i) {
    const device::CopyPair pair = pairAt(i, pointers);
    if (pair.columnwise.codes)
      launchTransposeCodes(
          {.codes = pair.rowwise.codes, .to = pair.columnwise.codes, .rows = spec().rows(), .cols = spec().cols()},
          device.stream);
  }
}

void StepCopies::launchFrom(const std::byte* tensor, Pointers pointers, const DeviceContext& device) const {
  if (isAmaxOnly() && m_operands.front().foundTransformedAmax >= 0)
    return launchTransformedAmax(tensor, pointers, device);
  if (isAmaxOnly()) {
    const AmaxSearch search =
        searchOf({.tensor = tensor, .rows = spec().rows(), .cols = spec().cols()}, clearedAmax(pointers, device));
    return launchAmax({&search, 1}, device.numMultiprocessors, device.stream);
  }
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < m_operands.size(); ++i) pieces.push_back(pieceOf(i, tensor, pointers));
  launchPieces(pieces, device);
}

/// Finds the amaxes of the tensor and of its transform.
void StepCopies::launchTransformedAmax(const std::byte* tensor, Pointers pointers, const DeviceContext& device) const {
  const auto found = [&](int operand) {
    return device::Nvfp4Copy{.codes = reinterpret_cast<std::uint8_t*>(memoryAt(pointers, operand)),
                             .amax = floatsAt<float>(pointers, operand)};
  };
  Nvfp4Quantization task{.x = tensor,
                         .element = elementOf(spec().dtype),
                         .rows = spec().rows(),
                         .cols = spec().cols(),
                         .rowwise = found(m_operands.front().foundAmax),
                         .columnwise = found(m_operands.front().foundTransformedAmax)};
  task.columnwise.isTransformed = true;
  launchNvfp4Amaxes(task, device.stream);
}

void StepCopies::launchFromSources(Pointers pointers, const DeviceContext& device) const {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < m_operands.size(); ++i)
    pieces.push_back(pieceOf(i, memoryAt(pointers, m_operands[i].source), pointers));
  launchPieces(pieces, device);
}

StepCopies::Piece StepCopies::pieceOf(std::size_t index, const std::byte* tensor, Pointers pointers) const {
  const QuantizeOperands& operands = m_operands[index];
  const QuantizeWork& work = m_step->copies[index];
  return {.tensor = tensor,
          .rows = work.spec.rows(),
          .cols = work.spec.cols(),
          .rowwise = copyAt(work.quantizers.rowwise, operands.rowwise, pointers),
          .columnwise = copyAt(work.quantizers.columnwise, operands.columnwise, pointers),
          .scale = floatsAt<const float>(pointers, operands.scale),
          .raised = floatsAt<float>(pointers, operands.history),
          .amax = floatsAt<const float>(pointers, operands.knownAmax),
          .transformedAmax = floatsAt<const float>(pointers, operands.knownTransformedAmax),
          .name = pieceName(m_graph->node(work.reader), work, 0, 0)};
}

AmaxSearch StepCopies::searchOf(const Piece& piece, float* amax) const {
  return {.x = piece.tensor, .element = elementOf(spec().dtype), .elements = piece.rows * piece.cols, .amax = amax};
}

void StepCopies::launchPieces(std::span<const Piece> pieces, const DeviceContext& device) const {
  if (isNvfp4(scalingOf(m_step->copies.front().quantizers))) return launchNvfp4(pieces, device);
  kind() == device::CopyKind::Tensor ? launchTensors(pieces, device) : launchBlocks(pieces, device);
}

/// Without rows, too: the amax is that of nothing then.
void StepCopies::launchNvfp4(std::span<const Piece> pieces, const DeviceContext& device) const {
  const auto copyOf = [](const PieceCopy& copy, const std::string& name) {
    device::Nvfp4Copy made = nvfp4CopyOf(copy.spec, copy.memory);
    made.isStochastic = copy.quantizer.roundsStochastically;
    if (made.isStochastic) made.random = roundingBytesOf(name, copy.spec.quantized->direction);
    return made;
  };
  std::vector<Nvfp4Quantization> tasks;
  for (const Piece& piece : pieces)
    tasks.push_back({.x = piece.tensor,
                     .element = elementOf(spec().dtype),
                     .rows = piece.rows,
                     .cols = piece.cols,
                     .rowwise = copyOf(piece.rowwise, piece.name),
                     .columnwise = copyOf(piece.columnwise, piece.name),
                     .hasSquares = hasSquares(scalingOf(m_step->copies.front().quantizers)),
                     .knownAmax = piece.amax,
                     .knownTransformedAmax = piece.transformedAmax});
  launchNvfp4Quantize(tasks, device.stream);
}

void StepCopies::launchBlocks(std::span<const Piece> pieces, const DeviceContext& device) const {
  std::vector<BlockQuantization> tasks;
  for (const Piece& piece : pieces)
    if (piece.rows > 0 && piece.cols > 0)
      tasks.push_back({.x = piece.tensor,
                       .element = elementOf(spec().dtype),
                       .rows = piece.rows,
                       .cols = piece.cols,
                       .rowwise = coded(piece.rowwise),
                       .columnwise = coded(piece.columnwise)});
  launchBlockQuantize(tasks, kind(), device.stream);
}

/// A scale known beforehand comes with a history, which contains the current step's amax at index 0: it is computed on
/// the way. Other scales need the amax first.
void StepCopies::launchTensors(std::span<const Piece> pieces, const DeviceContext& device) const {
  const std::span<float> amaxes = findsAmaxes() ? m_amaxes.cleared(device.stream) : std::span<float>();
  const bool isOneScale = haveOneScale(*m_graph, *m_step);
  std::vector<AmaxSearch> searches;
  std::vector<TensorQuantization> tasks;
  for (const Piece& piece : pieces) {
    float* const found = amaxes.empty() ? nullptr : &amaxes[isOneScale ? 0 : tasks.size()];
    if (found) searches.push_back(searchOf(piece, found));
    tasks.push_back({.x = piece.tensor,
                     .element = elementOf(spec().dtype),
                     .rows = piece.rows,
                     .cols = piece.cols,
                     .rowwise = coded(piece.rowwise),
                     .columnwise = coded(piece.columnwise),
                     .scale = piece.scale,
                     .amax = found ? found : piece.amax,
                     .raised = piece.raised});
  }
  launchAmax(searches, device.numMultiprocessors, device.stream);
  launchQuantize(tasks, device.stream);
}

std::int64_t StepCopies::numGroups() const {
  const QuantizeOperands& operands = m_operands.front();
  return specAt(operands.rowwise >= 0 ? operands.rowwise : operands.columnwise).quantized->numGroups;
}

/// For a weight in one tensor, which has no sizes, all groups are equal.
std::vector<std::int64_t> StepCopies::readSizes(Pointers pointers, const DeviceContext& device) const {
  const int operand = m_operands.front().sizes;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(numGroups()), spec().rows() / numGroups());
  if (operand >= 0) device.readBack(sizes.data(), memoryAt(pointers, operand), sizes.size() * sizeof(std::int64_t));
  const Node& reader = m_graph->node(m_step->copies.front().reader);
  for (const int copy : {m_operands.front().columnwise, m_operands.front().rowwise})
    if (copy >= 0) checkGroupSizes(reader, sizes, spec().rows(), specAt(copy));
  return sizes;
}

std::vector<StepCopies::PieceCopy> StepCopies::groupCopiesOf(const std::optional<QuantizerSpec>& quantizer, int operand,
                                                             std::span<const std::int64_t> sizes, Pointers pointers,
                                                             const DeviceContext& device) const {
  if (operand < 0 || !quantizer) return std::vector<PieceCopy>(sizes.size());
  std::byte* const all = memoryAt(pointers, operand);
  launchWrite(sizes, reinterpret_cast<std::int64_t*>(all), device.stream);  // the sizes come first
  std::vector<PieceCopy> copies;
  for (const GroupCopy& group : groupCopies(specAt(operand), sizes))
    copies.push_back({*quantizer, group.spec, all + group.offset});
  return copies;
}

std::vector<StepCopies::Piece> StepCopies::groupPieces(std::size_t index, Pointers pointers,
                                                       const DeviceContext& device) {
  if (m_groupSizes.empty() || !m_hasFixedSizes) m_groupSizes = readSizes(pointers, device);
  const std::vector<std::int64_t>& sizes = m_groupSizes;
  const QuantizeOperands& operands = m_operands[index];
  const QuantizeWork& work = m_step->copies[index];
  const TensorQuantizers& quantizers = work.quantizers;
  const auto rowwise = groupCopiesOf(quantizers.rowwise, operands.rowwise, sizes, pointers, device);
  const auto columnwise = groupCopiesOf(quantizers.columnwise, operands.columnwise, sizes, pointers, device);
  const auto ofGroup = [](int first, std::size_t group) {
    return first < 0 ? -1 : first + 2 * static_cast<int>(group);
  };
  std::vector<Piece> pieces;
  std::int64_t firstRow = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    pieces.push_back({.firstRow = firstRow,
                      .rows = sizes[i],
                      .cols = spec().cols(),
                      .rowwise = rowwise[i],
                      .columnwise = columnwise[i],
                      .scale = floatsAt<const float>(pointers, ofGroup(operands.scale, i)),
                      .raised = floatsAt<float>(pointers, ofGroup(operands.history, i)),
                      .name = pieceName(m_graph->node(work.reader), work, numGroups(), static_cast<std::int64_t>(i))});
    firstRow += sizes[i];
  }
  return pieces;
}

void StepCopies::launchGroups(Pointers pointers, const DeviceContext& device) {
  const std::byte* const tensor = memoryAt(pointers, m_operands.front().source);
  const std::int64_t rowBytes = spec().cols() * sizeBytes(spec().dtype);
  std::vector<Piece> pieces = groupPieces(0, pointers, device);
  for (Piece& piece : pieces) piece.tensor = tensor + piece.firstRow * rowBytes;
  launchPieces(pieces, device);
}

std::vector<StepCopies::GroupPair> StepCopies::groupPairs(Pointers pointers, const DeviceContext& device) {
  std::vector<GroupPair> pairs;
  for (std::size_t i = 0; i < m_operands.size(); ++i)
    for (const Piece& piece : groupPieces(i, pointers, device))
      pairs.push_back({piece.firstRow,
                       piece.rows,
                       {.rowwise = coded(piece.rowwise),
                        .columnwise = coded(piece.columnwise),
                        .scale = piece.scale,
                        .amax = piece.raised}});
  return pairs;
}

}  // namespace fuseline::cuda
