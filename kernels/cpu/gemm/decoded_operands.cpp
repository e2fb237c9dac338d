// Decodes quantized operands into scratch memory in front of a kernel.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/decoded_operands.h"

#include "core/fusion/step_operands.h"
#include "core/graph/input_rounding.h"
#include "core/quant/attention_quantizers.h"
#include "core/tensor/grouped_copy.h"
#include "kernels/cpu/elementwise/strip_functions.h"
#include "kernels/cpu/gemm/coded_gemm.h"
#include "kernels/cpu/machine/cpu_memory.h"
#include "kernels/cpu/quantize/quantized_copy.h"

#include <algorithm>
#include <iterator>

namespace fuseline::cpu {

namespace {

constexpr std::int64_t kAlignment = 64;

bool isReadQuantized(const Plan& plan, const StepOperand& operand) {
  return operand.access == OperandAccess::Read && plan.spec(operand).quantized;
}

/// Did the quantizer of this operand round its scales to powers of two?
bool hasPowerOfTwoScales(const CompileRequest& request, const StepOperand& operand) {
  const auto member = static_cast<std::size_t>(operand.key.member);
  const FusedOperation entry{.rule = nullptr, .nodes = {request.step.nodes[member]}};
  const auto gemm = gemmOperand(request.graph, entry, {0, operand.key.kind, operand.key.slot});
  if (!gemm) return false;
  const TensorQuantizers& quantizers = quantizersOf(request.graph.node(gemm->node), gemm->type);
  const std::optional<QuantizerSpec>& spec = quantizers.of(request.plan.spec(operand).quantized->direction);
  return spec && spec->scale.isPowerOfTwo;
}

/// Does the quantized tensor have a factor for all of its values?
bool hasTensorScale(const QuantizedForm& form) {
  return form.scaling == Scaling::PerTensor || (isNvfp4(form.scaling) && form.scaling != Scaling::NvRow1x16);
}

/// bf16 has no room for that factor.
DType dtypeWithAllFactors(const QuantizedForm& form, bool hasPowerOfTwoScales) {
  return hasTensorScale(form) ? DType::F32 : decodedDType(form, hasPowerOfTwoScales);
}

/// Pieces of a GEMM multiply as the whole of it would.
std::int64_t rowsOfWhole(const TensorSpec& x) { return x.quantized->window ? x.quantized->window.whole : x.rows(); }

/// A weight that never changes, with one scale, and an x of few rows with values that bf16 represents exactly.
bool isMultipliedAsCodes(const CompileRequest& request, const StepOperand& weight) {
  const QuantizedForm& form = *request.plan.spec(weight).quantized;
  const bool isConstant = request.options.parametersAreConstant && weight.key.kind == OperandKind::Parameter;
  if (!isConstant || !request.settings.isBf16GemmNative || form.scaling != Scaling::PerTensor) return false;
  const Binding x = findOperand(request, {weight.key.member, OperandKind::Input, 0});
  const NodeId node = request.step.nodes[static_cast<std::size_t>(weight.key.member)];
  return x && x.spec.quantized && x.spec.quantized->scaling == Scaling::PerTensor &&
         rowsOfWhole(x.spec) <= kMostCodedRows &&
         request.graph.spec(node, OperandKind::Output, 0).dtype != DType::F16 && canMultiplyCodes();
}

/// Does the kernel get the operand rounded to the dtype of a weight? The rows of a norm keep the dtype in which their
/// gradients are requested.
std::optional<DType> roundedOperand(const CompileRequest& request, const StepOperand& operand) {
  const auto& [member, kind, slot] = operand.key;
  const bool isMainInput = kind == OperandKind::Input && slot == 0 && operand.access == OperandAccess::Read;
  const bool isOfMember = member >= 0 && member < static_cast<int>(request.step.nodes.size());
  if (!isMainInput || !isOfMember || isReadQuantized(request.plan, operand)) return std::nullopt;
  return roundedInput(request.graph, request.member(static_cast<std::size_t>(member)));
}

DecodedOperands::Operand roundedOperand(const CompileRequest& request, std::size_t index, DType dtype) {
  const StepOperand& operand = request.step.operands[index];
  const TensorSpec& spec = request.plan.spec(operand);
  const bool isNorm =
      request.member(static_cast<std::size_t>(operand.key.member)).operation->category == "Normalization";
  return {.index = static_cast<int>(index), .copy = spec, .dtype = isNorm ? spec.dtype : dtype, .roundedTo = dtype};
}

/// Every element, through float32.
void roundElements(const DecodedOperands::Operand& operand, const std::byte* from, std::byte* to) {
  constexpr std::int64_t kElementsAtOnce = 4096;
  const std::int64_t elements = operand.copy.numElements();
  const auto encode = [](DType dtype, std::byte* out, const float* values, std::size_t count) {
    if (dtype == DType::F32)
      std::copy_n(values, count, reinterpret_cast<float*>(out));
    else
      encodeFunction(dtype)(out, values, nullptr, count);
  };
  const auto decode = [](DType dtype, float* values, const std::byte* in, std::size_t count) {
    if (dtype == DType::F32)
      std::copy_n(reinterpret_cast<const float*>(in), count, values);
    else
      decodeFunction(dtype)(values, in, nullptr, count);
  };
#pragma omp parallel for schedule(static)
  for (std::int64_t first = 0; first < elements; first += kElementsAtOnce) {
    alignas(kAlignment) float values[kElementsAtOnce];
    alignas(kAlignment) std::byte rounded[kElementsAtOnce * sizeof(float)];
    const auto count = static_cast<std::size_t>(std::min(kElementsAtOnce, elements - first));
    decode(operand.copy.dtype, values, from + first * sizeBytes(operand.copy.dtype), count);
    encode(*operand.roundedTo, rounded, values, count);
    decode(*operand.roundedTo, values, rounded, count);
    encode(operand.dtype, to + first * sizeBytes(operand.dtype), values, count);
  }
}

DecodedOperands::Operand decodedOperand(const CompileRequest& request, const KernelDef& kernel, std::size_t index) {
  const StepOperand& operand = request.step.operands[index];
  const TensorSpec& copy = request.plan.spec(operand);
  const QuantizedForm& form = *copy.quantized;
  const Node& reader = request.member(static_cast<std::size_t>(operand.key.member));
  const bool includesFactors = rowGroups(reader) > 0 || isQuantizedAttention(reader);
  const bool hasPowersOfTwo = hasPowerOfTwoScales(request, operand);
  return {.index = static_cast<int>(index),
          .copy = copy,
          .dtype = isQuantizedAttention(reader) ? copy.dtype
                   : includesFactors            ? dtypeWithAllFactors(form, hasPowersOfTwo)
                                                : decodedDType(form, hasPowersOfTwo),
          .isTransposed = form.direction == Usage::Columnwise && traitsOf(form.scaling).isColumnwiseTransposed,
          .includesFactors = includesFactors,
          .hasFactor = !includesFactors && hasTensorScale(form),
          .staysCoded = kernel.multipliesCodes && isMultipliedAsCodes(request, operand)};
}

Binding bindingOf(const DecodedOperands::Operand& operand) {
  Binding binding{.index = operand.index,
                  .spec = {operand.dtype, operand.copy.shape},
                  .isTransposed = operand.isTransposed,
                  .factor = operand.hasFactor ? &operand.factor : nullptr};
  if (operand.staysCoded) binding.codes = operand.copy.quantized->format;
  return binding;
}

/// Null for an operand that is decoded in every run.
using KeptMemory = std::unique_ptr<DeviceMemory>;

class DecodingKernel final : public Kernel {
 public:
  DecodingKernel(std::unique_ptr<Kernel> inner, std::shared_ptr<DecodedOperands> decoded, std::vector<KeptMemory> kept)
      : m_inner(std::move(inner)), m_decoded(std::move(decoded)), m_kept(std::move(kept)) {}

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(m_decoded->bytes) + m_inner->workspaceBytes();
  }

  void run(std::span<std::byte* const> pointers, std::byte* workspace) override {
    m_pointers.assign(pointers.begin(), pointers.end());
    for (std::size_t i = 0; i < m_decoded->operands.size(); ++i) decode(i, workspace);
    m_inner->run(m_pointers, workspace + m_decoded->bytes);
    m_hasRun = true;
  }

 private:
  void decode(std::size_t i, std::byte* workspace) {
    DecodedOperands::Operand& operand = m_decoded->operands[i];
    std::byte*& pointer = m_pointers[static_cast<std::size_t>(operand.index)];
    if (!pointer) return;
    if (operand.staysCoded) {
      operand.factor = factorOfCopy(pointer, operand.copy);
      return;
    }
    std::byte* const out = m_kept[i] ? m_kept[i]->data() : workspace + operand.offset;
    if (!m_kept[i] || !m_hasRun) decode(operand, pointer, out);
    pointer = out;
  }

  static void decode(DecodedOperands::Operand& operand, const std::byte* codes, std::byte* out) {
    if (operand.roundedTo)
      roundElements(operand, codes, out);
    else if (operand.includesFactors)
      decodeGroups(operand, codes, out);
    else
      operand.factor = decodeCopy(codes, operand.copy, operand.dtype, out);
  }

  static void decodeGroups(const DecodedOperands::Operand& operand, const std::byte* codes, std::byte* out) {
    const std::int64_t rowBytes = operand.copy.cols() * sizeBytes(operand.dtype);
    for (const GroupCopy& group : groupCopies(operand.copy, codes))
      dequantizeCopy(codes + group.offset, group.spec, operand.dtype, out + group.firstRow * rowBytes);
  }

  std::unique_ptr<Kernel> m_inner;
  std::shared_ptr<DecodedOperands> m_decoded;
  std::vector<KeptMemory> m_kept;  // by operand
  std::vector<std::byte*> m_pointers;
  bool m_hasRun = false;
};

}  // namespace

std::shared_ptr<DecodedOperands> decodedOperands(const CompileRequest& request, const KernelDef& kernel) {
  auto decoded = std::make_shared<DecodedOperands>();
  for (std::size_t index = 0; index < request.step.operands.size(); ++index) {
    const std::optional<DType> rounded = roundedOperand(request, request.step.operands[index]);
    if (!rounded && !isReadQuantized(request.plan, request.step.operands[index])) continue;
    DecodedOperands::Operand operand =
        rounded ? roundedOperand(request, index, *rounded) : decodedOperand(request, kernel, index);
    operand.offset = decoded->bytes;
    if (!operand.staysCoded)
      decoded->bytes += roundedUp(operand.copy.numElements() * sizeBytes(operand.dtype), kAlignment);
    decoded->operands.push_back(std::move(operand));
  }
  std::ranges::transform(decoded->operands, std::back_inserter(decoded->bindings), bindingOf);
  return decoded->operands.empty() ? nullptr : decoded;
}

Result<std::unique_ptr<Kernel>> decodingKernel(std::unique_ptr<Kernel> inner, std::shared_ptr<DecodedOperands> decoded,
                                               const CompileRequest& request) {
  std::vector<KeptMemory> kept;
  for (const DecodedOperands::Operand& operand : decoded->operands) {
    kept.emplace_back();
    const StepOperand& read = request.step.operands[static_cast<std::size_t>(operand.index)];
    if (!request.options.parametersAreConstant || read.key.kind != OperandKind::Parameter) continue;
    if (operand.staysCoded) continue;
    const std::int64_t bytes = operand.copy.numElements() * sizeBytes(operand.dtype);
    Result<KeptMemory> memory = allocateCpuMemory(static_cast<std::size_t>(bytes));
    if (!memory) return memory.error();
    kept.back() = std::move(*memory);
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<DecodingKernel>(std::move(inner), std::move(decoded), std::move(kept)));
}

}  // namespace fuseline::cpu
