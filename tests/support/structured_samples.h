// Sample calls of ops whose main input needs more structure than rows and columns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "tests/support/op_samples.h"

#include <string>
#include <utility>
#include <vector>

namespace fuseline::testing {

using AttributeValues = std::vector<std::pair<std::string, AttributeValue>>;

/// A call of an op with these attributes, the others by default. Throws where the op refuses them.
OpSample sampleOf(const char* name, const AttributeValues& given, std::vector<TensorSpec> inputs);

/// Extents of an attention.
struct AttentionExtents {
  std::int64_t B = 2;
  std::int64_t queries = 5;  // of a sequence; of all in thd
  std::int64_t keys = 5;
  std::int64_t H = 2;
  std::int64_t G = 2;
  std::int64_t D = 4;
  std::int64_t Dv = 4;
};

/// A call of DotProductAttention with all inputs that its attributes ask for.
OpSample attentionSample(const AttentionExtents& extents, const AttributeValues& given = {});

/// Masks, windows, groups, biases, sinks and formats, on extents with few and with no tokens.
std::vector<OpSample> attentionSamples(const AttentionExtents& extents);

/// The sample as a graph, its numbers in this dtype; every output is one of the pipeline.
Graph sampleGraph(const OpSample& sample, DType dtype, ExecutionMode pass);

/// Throws where an op has no samples: a new structured op adds its own.
std::vector<OpSample> structuredSamples(const FusibleOperation& operation);

}  // namespace fuseline::testing
