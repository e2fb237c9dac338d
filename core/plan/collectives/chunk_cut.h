// Which GEMMs can be computed in pieces of their rows beside a part of a collective, and in how many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <cstdint>

namespace fuseline {

/// Rows: of a GEMM and of one rank, and of a part of the latter.
struct ChunkCut {
  std::int64_t rows = 0;
  std::int64_t ofRank = 0;
  std::int64_t ofPart = 0;
  std::int64_t ranks() const { return rows / ofRank; }
  std::int64_t parts() const { return ofPart == 0 ? 1 : ofRank / ofPart; }
};

/// Do operands of this kind have the rows of the GEMM? Parameters have none of them.
bool hasRows(OperandKind kind);

/// Can rows of the tensor be sent, and read, by themselves? no has the reason.
Verdict canShowRows(const PlanTensor& tensor);

/// Are these rows of this step's GEMM, and can pieces of them be computed? no has the reason.
Verdict canCut(const Graph& graph, const Plan& plan, const Step& gemm, std::int64_t rows);

/// ofRank: rows. bytes: of the whole tensor that is sent. chunks: see PlanOptions. One part: it is not worth it, or the
/// rows do not divide.
ChunkCut cutOf(const Plan& plan, const Step& gemm, std::int64_t rows, std::int64_t ofRank, std::int64_t bytes,
               int chunks);

}  // namespace fuseline
