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
  std::int64_t multiple = 1;  // of the rows of a part: the GEMM reads, or writes, whole blocks
  std::int64_t wanted = 1;    // parts
  std::int64_t ranks() const { return rows / ofRank; }
  std::int64_t parts() const { return ofPart == 0 ? 1 : ofRank / ofPart; }
};

/// Does the operand have the rows of the GEMM? Parameters, scales and amaxes have none of them.
bool hasRows(const Step& gemm, const StepOperand& operand);

/// Can rows of the tensor be sent by themselves? no has the reason.
Verdict canSendRows(const PlanTensor& tensor);

/// Are these rows of this step's GEMM, and can pieces of them be computed? no has the reason.
Verdict canCut(const Plan& plan, const Step& gemm, std::int64_t rows);

/// ofRank: rows. bytes: of the whole tensor that is sent. chunks: see PlanOptions. Cuts into the wanted number of
/// parts, or into the most below it that the rows divide into.
ChunkCut cutOf(const Plan& plan, const Step& gemm, std::int64_t rows, std::int64_t ofRank, std::int64_t bytes,
               int chunks);

}  // namespace fuseline
