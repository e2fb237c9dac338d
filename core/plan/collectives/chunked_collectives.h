// Collectives in parts, beside the pieces of the GEMM that consumes or produces their rows.
// Source: TransformerEngine's Userbuffers gather x, and scatter y, during the GEMM, and gather dy during dgrad.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <string>
#include <vector>

namespace fuseline {

/// A part has the same number of rows of each rank. While one is sent, the GEMM has the rows of another: a piece for
/// each rank, as these rows do not follow each other. Pieces compute the numbers of the whole. chunks, viewOf: see
/// PlanOptions and overlapCollectives(). Columnwise tensors that are stored transposed are sent with the last part.
void chunkCollectives(const Graph& graph, Plan& plan, std::vector<int>& viewOf, int chunks);

/// How many collectives are not in the wanted number of chunks, and why the first is not. Empty: all are.
std::string chunkProblem(const Plan& plan, int chunks);

}  // namespace fuseline
