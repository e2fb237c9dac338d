// Row-parallel layers that are given whole rows where every rank reads a share of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <cstdint>
#include <vector>

namespace fuseline {

struct WholeRows {
  NodeId layer = -1;       // the GEMM of a row-parallel layer
  NodeId source = -1;      // the upstream op with whole rows on every rank: a norm, or a layer that is not parallel
  std::int64_t width = 0;  // elements of a row of the source's result
};

/// Shards come from a column-parallel layer, or from outside. Elementwise ops and quantization pass either on; the
/// result of a Reshape is not known.
std::vector<WholeRows> wholeRowsIntoRowParallel(const Graph& graph);

}  // namespace fuseline
