// Binds copies to operands, and says which a tile can make.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/step_copies.h"

#include "core/tensor/scaling.h"
#include "kernels/cuda/block_quantize_launch.h"
#include "kernels/cuda/coded_copy.h"
#include "kernels/cuda/elementwise_launch.h"
#include "kernels/cuda/elementwise_program.h"
#include "kernels/cuda/linear_parts.h"
#include "kernels/cuda/quantize_launch.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

Scaling scalingOf(const TensorQuantizers& quantizers) {
  return (quantizers.rowwise ? quantizers.rowwise : quantizers.columnwise)->scaling;
}

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

/// Of the gated op among the members; 0: its halves are in one piece.
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

/// The halves of a result stand beside each other, and each begins a block.
Verdict canMakeHalves(const KernelQuery& query) {
  if (interleaveOf(query) != 0)
    return Verdict::no("The CUDA backend does not quantize results as they are made whose halves take turns.");
  const std::int64_t cols = query.copies->spec.cols() / 2;
  const std::int64_t together = columnsTogether(query.copies->quantizers);
  if (cols % together == 0) return Verdict::yes();
  return Verdict::no(
      fmt::format("The CUDA backend quantizes the two halves of a result as they are made where each has a multiple of "
                  "{} columns. These have {}.",
                  together, cols));
}

/// Recipes give both copies of a tensor one scaling.
Verdict haveOneScaling(const TensorQuantizers& quantizers) {
  const auto& [rowwise, columnwise, isDequantized] = quantizers;
  if (!rowwise || !columnwise || rowwise->scaling == columnwise->scaling) return Verdict::yes();
  return Verdict::no(
      fmt::format("The CUDA backend quantizes both copies of a tensor with one scaling, not with {} and {}.",
                  traitsOf(rowwise->scaling).name, traitsOf(columnwise->scaling).name));
}

Verdict canQuantize(const TensorQuantizers& quantizers) {
  for (const Verdict& fits :
       {fitsLibrary(quantizers.rowwise), fitsLibrary(quantizers.columnwise), haveOneScaling(quantizers)})
    if (!fits) return fits;
  return Verdict::yes();
}

}  // namespace

Verdict canMakeCopies(const KernelQuery& query) {
  if (const Verdict fits = canQuantize(query.copies->quantizers); !fits) return fits;
  if (lanesOf(query) > 1) return canMakeHalves(query);
  if (interleaveOf(query) % kVectorWidth == 0 && query.copies->spec.cols() % kVectorWidth == 0) return Verdict::yes();
  return Verdict::no(fmt::format(
      "The CUDA backend quantizes results by packets of {} columns, which this one does not have.", kVectorWidth));
}

StepCopies::StepCopies(const CompileRequest& request) : m_plan(&request.plan), m_step(&request.step) {
  for (const QuantizeWork& work : m_step->copies) m_operands.emplace_back(*m_step, work);
}

Result<StepCopies> StepCopies::make(const CompileRequest& request) {
  const std::vector<QuantizeWork>& works = request.step.copies;
  for (const QuantizeWork& work : works)
    if (const Verdict fits = canQuantize(work.quantizers); !fits) return Error{fits.reason(), ErrorKind::RunFailed};
  const Scaling scaling = scalingOf(works.front().quantizers);
  const bool isSame =
      std::ranges::all_of(works, [&](const QuantizeWork& work) { return scalingOf(work.quantizers) == scaling; });
  if (isSame) return StepCopies(request);
  return Error{fmt::format("Step \"{}\" makes quantized copies with several scalings, which the GPU's kernel cannot.",
                           request.step.name),
               ErrorKind::RunFailed};
}

device::CopyKind StepCopies::kind() const { return copyKindOf(scalingOf(m_step->copies.front().quantizers)); }

device::CopyPair StepCopies::pairAt(std::size_t index, Pointers pointers) const {
  const QuantizeOperands& operands = m_operands[index];
  const TensorQuantizers& quantizers = m_step->copies[index].quantizers;
  return {.rowwise = copyOf(quantizers.rowwise, operands.rowwise, pointers),
          .columnwise = copyOf(quantizers.columnwise, operands.columnwise, pointers),
          .scale = floatsAt<const float>(pointers, operands.scale),
          .amax = floatsAt<float>(pointers, operands.history)};
}

device::HandOver StepCopies::at(Pointers pointers) const {
  device::HandOver handOver{.numPairs = static_cast<int>(m_operands.size())};
  for (std::size_t i = 0; i < m_operands.size(); ++i) handOver.pairs[i] = pairAt(i, pointers);
  return handOver;
}

void StepCopies::launchFrom(const std::byte* tensor, Pointers pointers, float* amax,
                            const DeviceContext& device) const {
  for (std::size_t i = 0; i < m_operands.size(); ++i) {
    const device::CopyPair pair = pairAt(i, pointers);
    if (kind() == device::CopyKind::Tensor) {
      launchTensor(tensor, pair, amax, device);
      continue;
    }
    launchBlockQuantize({.x = tensor,
                         .element = elementOf(spec().dtype),
                         .rows = spec().rows(),
                         .cols = spec().cols(),
                         .rowwise = pair.rowwise,
                         .columnwise = pair.columnwise},
                        kind(), device.stream);
  }
}

/// A history has the amax of the step at hand, which begins at 0.
void StepCopies::launchTensor(const std::byte* tensor, const device::CopyPair& pair, float* amax,
                              const DeviceContext& device) const {
  const device::Element element = elementOf(spec().dtype);
  if (!pair.scale && !pair.amax) launchClear(amax, device.stream);
  float* const found = pair.scale || pair.amax ? pair.amax : amax;
  if (found) launchAmax(tensor, element, spec().numElements(), found, device.numMultiprocessors, device.stream);
  launchQuantize({.x = tensor,
                  .element = element,
                  .rows = spec().rows(),
                  .cols = spec().cols(),
                  .rowwise = pair.rowwise,
                  .columnwise = pair.columnwise,
                  .scale = pair.scale,
                  .amax = found},
                 device.stream);
}

device::CodedCopy StepCopies::copyOf(const std::optional<QuantizerSpec>& quantizer, int index,
                                     Pointers pointers) const {
  if (!quantizer || index < 0) return {};
  const TensorSpec& spec = m_plan->spec(m_step->operands[static_cast<std::size_t>(index)]);
  device::CodedCopy copy = codedCopyOf(spec, pointers[static_cast<std::size_t>(index)]);
  copy.rule = scaleRuleOf(*quantizer, m_step->copies.front().spec.dtype);
  return copy;
}

}  // namespace fuseline::cuda
