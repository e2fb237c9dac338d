// Looks at the operands of a GEMM, and at a model of time.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collectives/chunk_cut.h"

#include "core/plan/column_views.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <array>

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

/// Does each piece of this number of rows begin where kernels may read and write?
bool isDividedInto(const TensorSpec& whole, std::int64_t rows) {
  return rows * whole.cols() * sizeBytes(whole.dtype) % columnAlignment(whole) == 0;
}

bool isDivided(const Plan& plan, const Step& gemm, std::int64_t ofRank, std::int64_t parts) {
  return ofRank > 0 && ofRank % parts == 0 && std::ranges::all_of(gemm.operands, [&](const StepOperand& operand) {
           return !hasRows(operand.key.kind) || isDividedInto(plan.spec(operand), ofRank / parts);
         });
}

}  // namespace

bool hasRows(OperandKind kind) { return kind != OperandKind::Parameter && kind != OperandKind::GradParameter; }

Verdict canShowRows(const PlanTensor& tensor) {
  if (tensor.columns) return Verdict::no(fmt::format("{} is columns of a wider tensor", tensor.name));
  if (tensor.spec.quantized) return Verdict::no(fmt::format("{} is quantized and sent as a whole", tensor.name));
  return Verdict::yes();
}

Verdict canCut(const Graph& graph, const Plan& plan, const Step& gemm, std::int64_t rows) {
  if (gemm.kernel != "BasicLinear" && gemm.kernel != "linear_epilogue")
    return Verdict::no(fmt::format("{} is not a GEMM that can be computed in pieces", gemm.name));
  if (!gemm.copies.empty()) return Verdict::no(fmt::format("{} also quantizes its result", gemm.name));
  const bool isRandom =
      std::ranges::any_of(gemm.nodes, [&](NodeId id) { return graph.node(id).operation->name == "Dropout"; });
  if (isRandom) return Verdict::no(fmt::format("{} has the mask of a Dropout for all rows", gemm.name));
  for (const StepOperand& operand : gemm.operands) {
    const PlanTensor& whole = plan.tensors[toIndex(operand.tensor)];
    if (operand.key.kind == OperandKind::GradParameter)
      return Verdict::no(fmt::format("{} also computes gradients of parameters", gemm.name));
    if (whole.spec.quantized) return Verdict::no(fmt::format("{} multiplies quantized tensors", gemm.name));
    if (!hasRows(operand.key.kind)) continue;
    if (Verdict shows = canShowRows(whole); !shows) return shows;
    if (whole.spec.rows() != rows)
      return Verdict::no(fmt::format("{} has {} rows, but the GEMM {}", whole.name, whole.spec.rows(), rows));
  }
  return Verdict::yes();
}

ChunkCut cutOf(const Plan& plan, const Step& gemm, std::int64_t rows, std::int64_t ofRank, std::int64_t bytes,
               int chunks) {
  std::int64_t parts = chunks > 0 ? chunks : bestChunks(static_cast<double>(bytes), static_cast<double>(gemm.flops));
  while (parts > 1 && !isDivided(plan, gemm, ofRank, parts)) --parts;
  return {.rows = rows, .ofRank = ofRank, .ofPart = ofRank / parts};
}

}  // namespace fuseline
