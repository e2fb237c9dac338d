// Looks at the operands of a GEMM, and at a model of time.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collectives/chunk_cut.h"

#include "core/support/to_index.h"
#include "core/tensor/scaling.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// A collective of some bytes, and a GEMM, between H100 GPUs over NVLink 4: NCCL's latency, published bandwidth, and
/// the speed of large bf16 GEMMs.
constexpr double kLatencyNs = 12e3;
constexpr double kBytesPerNs = 370.0;
constexpr double kFlopsPerNs = 650e3;
constexpr std::array kTriedChunks = {1, 2, 4, 8};

double timeInChunks(int chunks, double bytes, double flops) {
  const double sentNs = kLatencyNs + bytes / chunks / kBytesPerNs;
  const double gemmNs = flops / chunks / kFlopsPerNs;
  return sentNs + (chunks - 1) * std::max(sentNs, gemmNs) + gemmNs;
}

int bestChunks(double bytes, double flops) {
  return std::ranges::min(kTriedChunks, {}, [&](int chunks) { return timeInChunks(chunks, bytes, flops); });
}

std::int64_t rowMultiple(const Plan& plan, const Step& gemm) {
  std::int64_t multiple = 1;
  for (const StepOperand& operand : gemm.operands) {
    const std::optional<QuantizedForm>& form = plan.spec(operand).quantized;
    if (form && hasRows(gemm, operand)) multiple = std::lcm(multiple, windowMultiple(*form));
  }
  return multiple;
}

bool isOfCopies(const Step& gemm, const StepOperand& operand) {
  return operand.key.member >= static_cast<int>(gemm.nodes.size());
}

bool isRandom(const TensorQuantizers& quantizers) {
  const auto rounds = [](const std::optional<QuantizerSpec>& quantizer) {
    return quantizer && quantizer->roundsStochastically;
  };
  return rounds(quantizers.rowwise) || rounds(quantizers.columnwise);
}

/// Can a step quantize a part of its result?
Verdict canQuantizeRows(const Step& gemm, const QuantizeWork& work) {
  if (gemm.find({work.member, OperandKind::Output, 3}))
    return Verdict::no(fmt::format("{} finds the amax of a transform of all rows", work.name));
  if (work.isAmaxOnly()) return Verdict::yes();
  if (isRandom(work.quantizers)) return Verdict::no(fmt::format("{} rounds at random by all rows", work.name));
  const QuantizerSpec& quantizer = work.quantizers.rowwise ? *work.quantizers.rowwise : *work.quantizers.columnwise;
  const bool isOfTensor = quantizer.scaling == Scaling::PerTensor || isNvfp4(quantizer.scaling);
  const bool isKnown =
      gemm.find({work.member, OperandKind::Parameter, 0}) || gemm.find({work.member, OperandKind::Input, 2});
  if (isOfTensor && !isKnown) return Verdict::no(fmt::format("{} needs the amax of all rows", work.name));
  return Verdict::yes();
}

/// Can a GEMM read or write rows of the tensor?
Verdict canShowRows(const PlanTensor& tensor) {
  const std::optional<QuantizedForm>& form = tensor.spec.quantized;
  if (!form) return Verdict::yes();
  if (form->numGroups > 0) return Verdict::no(fmt::format("{} has groups of rows", tensor.name));
  if (form->direction == Usage::Columnwise && traitsOf(form->scaling).isColumnwiseTransposed)
    return Verdict::no(fmt::format("{} is stored transposed, so that its rows are apart", tensor.name));
  return Verdict::yes();
}

}  // namespace

bool hasRows(const Step& gemm, const StepOperand& operand) {
  const auto& [member, kind, slot] = operand.key;
  if (isOfCopies(gemm, operand)) return kind == OperandKind::Output && slot < 2;
  return kind != OperandKind::Parameter && kind != OperandKind::GradParameter;
}

Verdict canSendRows(const PlanTensor& tensor) {
  if (tensor.columns) return Verdict::no(fmt::format("{} is columns of a wider tensor", tensor.name));
  return canShowRows(tensor);
}

Verdict canCut(const Plan& plan, const Step& gemm, std::int64_t rows) {
  if (gemm.kernel != "BasicLinear" && gemm.kernel != "linear_epilogue")
    return Verdict::no(fmt::format("{} beside it is not a GEMM that can be computed in pieces", gemm.name));
  const auto isGradient = [](const StepOperand& operand) { return operand.key.kind == OperandKind::GradParameter; };
  if (std::ranges::any_of(gemm.operands, isGradient))
    return Verdict::no(fmt::format("{} also computes gradients of parameters", gemm.name));
  for (const QuantizeWork& work : gemm.copies)
    if (Verdict quantizes = canQuantizeRows(gemm, work); !quantizes) return quantizes;
  for (const StepOperand& operand : gemm.operands) {
    const PlanTensor& whole = plan.tensors[toIndex(operand.tensor)];
    if (!hasRows(gemm, operand)) continue;
    if (Verdict shows = canShowRows(whole); !shows) return shows;
    if (whole.spec.rows() != rows)
      return Verdict::no(fmt::format("{} has {} rows, but the GEMM {}", whole.name, whole.spec.rows(), rows));
  }
  return Verdict::yes();
}

ChunkCut cutOf(const Plan& plan, const Step& gemm, std::int64_t rows, std::int64_t ofRank, std::int64_t bytes,
               int chunks) {
  ChunkCut cut{.rows = rows, .ofRank = ofRank, .multiple = rowMultiple(plan, gemm), .wanted = chunks};
  if (chunks == 0) cut.wanted = bestChunks(static_cast<double>(bytes), static_cast<double>(gemm.flops));
  std::int64_t parts = cut.wanted;
  while (parts > 1 && ofRank % (parts * cut.multiple) != 0) --parts;
  cut.ofPart = ofRank / parts;
  return cut;
}

}  // namespace fuseline
