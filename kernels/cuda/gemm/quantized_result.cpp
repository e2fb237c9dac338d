// Checks the readers of a result, and launches the work after its GEMM.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/quantized_result.h"

#include "core/ops/attention_form.h"
#include "core/quant/attention_quantizers.h"
#include "kernels/cuda/quantize/quantize_launch.h"
#include "kernels/cuda/support/workspace.h"

#include <utility>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// Is a linear op the only reader of the value?
bool isReadByOneLinear(const Graph& graph, const Value& value) {
  return value.uses.size() == 1 && !value.isOutput && value.uses.front().slot == 0 &&
         graph.node(value.uses.front().node).operation->isQuantizable;
}

/// The same for the gradient of a linear op's input.
bool isGradientOfOneLinear(const Graph& graph, const Value& value) {
  return value.producer >= 0 && graph.node(value.producer).operation->isQuantizable;
}

bool isReadAlone(const KernelQuery& query) {
  const Node& first = query.graph.node(query.members.front());
  const Node& last = query.graph.node(query.members.back());
  return query.phase == Phase::Forward ? isReadByOneLinear(query.graph, query.graph.value(last.outputs.front()))
                                       : isGradientOfOneLinear(query.graph, query.graph.value(first.inputs.front()));
}

/// In backward this is asked of kernels whose input gradient has no epilogue.
bool hasOnlyABias(const KernelQuery& query) {
  if (query.members.size() == 1 || query.phase == Phase::Backward) return true;
  return query.members.size() == 2 && query.graph.node(query.members.back()).operation->name == "Bias";
}

}  // namespace

namespace {

/// The slot in which an attention reads the value, or a view of it, quantized; -1: there is none.
int slotOfAttention(const Graph& graph, const Value& value) {
  if (value.uses.size() != 1) return -1;
  const Use& use = value.uses.front();
  const Node& reader = graph.node(use.node);
  if (isQuantizedAttention(reader)) return use.slot;
  return reader.operation->isView ? slotOfAttention(graph, graph.value(reader.outputs.front())) : -1;
}

/// Attention reads rounded values, which take a pass after the GEMM. Keys and values have it for the sake of queries.
Verdict canQuantizeForAttention(const KernelQuery& query, int slot) {
  if (slot == AttentionForm::kQuery)
    return Verdict::no("A quantization of queries after a cuBLASLt GEMM would take another pass.");
  if (hasOnlyABias(query)) return Verdict::yes();
  return Verdict::no("cuBLASLt quantizes the result of a GEMM with a bias, but not with other epilogues.");
}

}  // namespace

Verdict canQuantizeResult(const KernelQuery& query) {
  const Value& result = query.graph.value(query.graph.node(query.members.back()).outputs.front());
  const int slot = query.phase == Phase::Forward ? slotOfAttention(query.graph, result) : -1;
  if (slot >= 0) return canQuantizeForAttention(query, slot);
  const TensorQuantizers& quantizers = query.copies->quantizers;
  if (!quantizers.isDelayed() || !areOfRows(quantizers))
    return Verdict::no("cuBLASLt quantizes the result of a GEMM only with one scale that is known in advance.");
  const bool isReadPlain = !quantizers.columnwise && !quantizers.isDequantizedInBackward;
  if (isReadPlain || !isReadAlone(query))
    return Verdict::no(
        "cuBLASLt writes the result of a GEMM either quantized or not, and not only the next linear op's quantized "
        "GEMMs read this one.");
  const bool hasBias = query.phase == Phase::Forward && query.members.size() == 2;
  if (hasBias && query.graph.value(query.graph.node(query.members.back()).outputs[0]).spec.dtype == DType::F32)
    return Verdict::no("cuBLASLt adds no bias in float32 to a result that it quantizes.");
  if (hasOnlyABias(query)) return Verdict::yes();
  return Verdict::no("cuBLASLt quantizes the result of a GEMM with a bias, but not with other epilogues.");
}

QuantizedResult::QuantizedResult(StepCopies copies, const GemmProblem& solved, bool isStored,
                                 const DeviceContext& device)
    : m_copies(std::move(copies)), m_device(&device), m_isByLibrary(solved.cFormat.has_value()), m_isStored(isStored) {
  const std::int64_t bytes = solved.m * solved.n * (m_isByLibrary ? 1 : sizeBytes(solved.cType));
  if (isStored) return;
  m_workspaceBytes = m_amaxOffset = workspacePart(static_cast<std::size_t>(bytes));
  if (m_isByLibrary) m_workspaceBytes += workspacePart(sizeof(float));
}

/// A rowwise tensor that no GEMM reads is in the workspace.
void QuantizedResult::place(GemmPointers& memory, Pointers pointers, std::byte* workspace) const {
  if (m_isStored) return;
  memory.c = workspace;
  if (!m_isByLibrary) return;
  const device::CopyPair copies = m_copies.at(pointers).pairs[0];
  if (copies.rowwise.codes) memory.c = reinterpret_cast<std::byte*>(copies.rowwise.codes);
  memory.cScale = copies.scale;
  memory.cAmax = m_copies.isOfPiece() ? reinterpret_cast<float*>(workspace + m_amaxOffset) : copies.amax;
}

void QuantizedResult::finish(const GemmPointers& memory, Pointers pointers) const {
  if (!m_isByLibrary) return m_copies.launchFrom(memory.c, pointers, *m_device);
  const device::CopyPair copies = m_copies.at(pointers).pairs[0];
  if (memory.cAmax != copies.amax) {
    const AmaxSearch found{.x = memory.cAmax, .elements = 1, .amax = copies.amax};
    launchAmax({&found, 1}, m_device->numMultiprocessors, m_device->stream);
  }
  const InverseScales inverses{.scale = copies.scale,
                               .first = static_cast<float*>(copies.rowwise.scales),
                               .second = static_cast<float*>(copies.columnwise.scales)};
  if (!copies.columnwise.codes) return launchInvertScale(inverses, m_device->stream);
  launchTransposeCodes({.codes = reinterpret_cast<const std::uint8_t*>(memory.c),
                        .to = copies.columnwise.codes,
                        .rows = m_copies.spec().rows(),
                        .cols = m_copies.spec().cols(),
                        .inverses = inverses},
                       m_device->stream);
}

std::string QuantizedResult::way() const {
  if (m_isByLibrary || m_isStored) return {};
  return "the result is quantized by a separate pass, because cuBLASLt does not write it quantized";
}

}  // namespace fuseline::cuda
