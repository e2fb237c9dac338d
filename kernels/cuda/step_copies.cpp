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

/// A gate's gradient is two results in one tensor.
bool isGradientOfGate(const KernelQuery& query) {
  const Node& first = query.graph.node(query.members.front());
  const std::int64_t outCols = query.graph.value(first.outputs.front()).spec.cols();
  return query.phase == Phase::Backward && query.copies->spec.cols() != outCols;
}

/// Are columns of an input that one result needs kept together in packets?
bool hasNarrowLanes(const KernelQuery& query) {
  constexpr const char* kInterleave = "glu_interleave_size";
  return std::ranges::any_of(query.members, [&](NodeId id) {
    const Attributes& attributes = query.graph.node(id).attributes;
    return attributes.has(kInterleave) && attributes.integer(kInterleave) % kVectorWidth != 0;
  });
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
  if (isGradientOfGate(query))
    return Verdict::no("The CUDA backend does not quantize the two gradients of a gated op as they are made yet.");
  if (hasNarrowLanes(query) || query.copies->spec.cols() % kVectorWidth != 0)
    return Verdict::no(
        fmt::format("The CUDA backend quantizes results by packets of {} columns, which this one does "
                    "not have.",
                    kVectorWidth));
  return Verdict::yes();
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
