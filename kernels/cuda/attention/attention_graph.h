// Attention as one kernel: a graph of cuDNN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"
#include "core/quant/recipe.h"
#include "kernels/cuda/attention/attention_operands.h"
#include "kernels/cuda/attention/tensor_graph.h"

#include <vector>

namespace fuseline::cuda {

/// Whether cuDNN has such an attention, as far as that is known beforehand: a sentence about what it lacks. capability:
/// of the GPU; 0.0: not known.
Verdict fitsAttentionGraph(const AttentionProblem& problem, Phase phase, ComputeCapability capability);

/// The same for FP8 attention of encoded values in the format.
Verdict fitsFp8AttentionGraph(const AttentionProblem& problem, Phase phase, ElementFormat format,
                              ComputeCapability capability);

/// Tensors by which a graph knows its sequences.
struct SequenceTensors {
  /// Where sequences begin in a tensor, in elements: tokens before it times the tensor's stride of tokens.
  struct Offsets {
    int tensor = -1;
    bool isOfQueries = true;
    std::int64_t tokenStride = 0;
  };
  int lengthsQ = -1, lengthsKv = -1;  // -1: every sequence has all tokens
  std::vector<Offsets> offsets;       // of thd
};

/// Tensors of the graph by what they are.
struct AttentionForwardGraph {
  TensorGraph graph;
  SequenceTensors sequences;
  int q = -1, k = -1, v = -1, y = -1;
  int lse = -1;  // -1: not wanted
  // FP8 only, one float32 each: the scales that dequantize q, k and v, and two results that only the pattern needs.
  int scaleQ = -1, scaleK = -1, scaleV = -1;
  int amaxProbabilities = -1, amaxY = -1;
};
AttentionForwardGraph attentionForwardGraph(const AttentionProblem& problem, bool hasLse);
/// q, k and v are encoded values in E4M3. Probabilities become E4M3 with a scale of 448, because none exceeds 1.
AttentionForwardGraph fp8AttentionForwardGraph(const AttentionProblem& problem, bool hasLse);

struct AttentionBackwardGraph {
  TensorGraph graph;
  SequenceTensors sequences;
  int q = -1, k = -1, v = -1, y = -1, dy = -1, lse = -1;
  int dq = -1, dk = -1, dv = -1;
  /// Tensors in the caller's workspace: sums of dy y, the gradient of q before it is rounded, and in thd those of k and
  /// v for each head of queries.
  std::vector<int> scratch;
};
AttentionBackwardGraph attentionBackwardGraph(const AttentionProblem& problem);

}  // namespace fuseline::cuda
