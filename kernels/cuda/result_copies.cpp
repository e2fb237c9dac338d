// Binds copies to operands, and says which a tile can make.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/result_copies.h"

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

}  // namespace

Verdict haveOneScaling(const TensorQuantizers& quantizers) {
  const auto& [rowwise, columnwise, isDequantized] = quantizers;
  if (!rowwise || !columnwise || rowwise->scaling == columnwise->scaling) return Verdict::yes();
  return Verdict::no(
      fmt::format("The CUDA backend quantizes both copies of a tensor with one scaling, not with {} and {}.",
                  traitsOf(rowwise->scaling).name, traitsOf(columnwise->scaling).name));
}

Verdict canMakeResultCopies(const KernelQuery& query) {
  const TensorQuantizers& quantizers = query.copies->quantizers;
  for (const Verdict& fits :
       {fitsLibrary(quantizers.rowwise), fitsLibrary(quantizers.columnwise), haveOneScaling(quantizers)})
    if (!fits) return fits;
  if (isGradientOfGate(query))
    return Verdict::no("The CUDA backend does not quantize the two gradients of a gated op as they are made yet.");
  if (hasNarrowLanes(query) || query.copies->spec.cols() % kVectorWidth != 0)
    return Verdict::no(
        fmt::format("The CUDA backend quantizes results by packets of {} columns, which this one does "
                    "not have.",
                    kVectorWidth));
  return Verdict::yes();
}

ResultCopies::ResultCopies(const CompileRequest& request) : m_plan(&request.plan), m_step(&request.step) {
  for (const QuantizeWork& work : m_step->copies) m_operands.emplace_back(*m_step, work);
}

Result<ResultCopies> ResultCopies::make(const CompileRequest& request) {
  const std::vector<QuantizeWork>& works = request.step.copies;
  const Scaling scaling = scalingOf(works.front().quantizers);
  const bool isSame =
      std::ranges::all_of(works, [&](const QuantizeWork& work) { return scalingOf(work.quantizers) == scaling; });
  if (isSame) return ResultCopies(request);
  return Error{fmt::format("Step \"{}\" makes quantized copies with several scalings, which the GPU's kernel cannot.",
                           request.step.name),
               ErrorKind::RunFailed};
}

device::CopyKind ResultCopies::kind() const { return copyKindOf(scalingOf(m_step->copies.front().quantizers)); }

device::CopyPair ResultCopies::pairAt(std::size_t index, Pointers pointers) const {
  const QuantizeOperands& operands = m_operands[index];
  const TensorQuantizers& quantizers = m_step->copies[index].quantizers;
  return {.rowwise = copyOf(quantizers.rowwise, operands.rowwise, pointers),
          .columnwise = copyOf(quantizers.columnwise, operands.columnwise, pointers),
          .scale = floatsAt<const float>(pointers, operands.scale),
          .amax = floatsAt<float>(pointers, operands.history)};
}

device::HandOver ResultCopies::at(Pointers pointers) const {
  device::HandOver handOver{.numPairs = static_cast<int>(m_operands.size())};
  for (std::size_t i = 0; i < m_operands.size(); ++i) handOver.pairs[i] = pairAt(i, pointers);
  return handOver;
}

void ResultCopies::launchFrom(const std::byte* result, Pointers pointers, const DeviceContext& device) const {
  for (std::size_t i = 0; i < m_operands.size(); ++i) {
    const device::CopyPair pair = pairAt(i, pointers);
    if (kind() == device::CopyKind::Tensor) {
      launchTensor(result, pair, device);
      continue;
    }
    launchBlockQuantize({.x = result,
                         .element = elementOf(spec().dtype),
                         .rows = spec().rows(),
                         .cols = spec().cols(),
                         .rowwise = pair.rowwise,
                         .columnwise = pair.columnwise},
                        kind(), device.stream);
  }
}

void ResultCopies::launchTensor(const std::byte* result, const device::CopyPair& pair,
                                const DeviceContext& device) const {
  const device::Element element = elementOf(spec().dtype);
  if (pair.amax) launchAmax(result, element, spec().numElements(), pair.amax, device.numMultiprocessors, device.stream);
  launchQuantize({.x = result,
                  .element = element,
                  .rows = spec().rows(),
                  .cols = spec().cols(),
                  .rowwise = pair.rowwise,
                  .columnwise = pair.columnwise,
                  .scale = pair.scale},
                 device.stream);
}

device::CodedCopy ResultCopies::copyOf(const std::optional<QuantizerSpec>& quantizer, int index,
                                       Pointers pointers) const {
  if (!quantizer || index < 0) return {};
  const TensorSpec& spec = m_plan->spec(m_step->operands[static_cast<std::size_t>(index)]);
  device::CodedCopy copy = codedCopyOf(spec, pointers[static_cast<std::size_t>(index)]);
  copy.rule = scaleRuleOf(*quantizer, m_step->copies.front().spec.dtype);
  return copy;
}

}  // namespace fuseline::cuda
