// FP8 attention (fp8_dpa): how a recipe quantizes the queries, keys and values of an attention and the gradient of its
// output, and in which formats the attention multiplies its probabilities and their gradients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"
#include "core/support/result.h"

namespace fuseline {

bool isAttention(const Node& node);

/// Does the recipe request FP8 attention?
bool requestsFp8Attention(const Recipe& recipe);

/// Whether this attention can multiply FP8 values under the recipe; no names the setting or the recipe.
Verdict fitsFp8Attention(const Node& attention, const Recipe& recipe);

/// The quantizers of x, k and v (input) and of the gradient of y; none where the verdict is no. Backward reads the
/// rowwise tensors of forward.
LinearQuantizers attentionQuantizers(const Node& attention, const Recipe& recipe);

/// Does a recipe quantize x, k and v of this node? They share one scale, as in TransformerEngine.
bool isQuantizedAttention(const Node& node);

/// The attributes of a node with what its quantizers add: the formats of an FP8 attention.
Attributes computedAttributes(const Node& node);

}  // namespace fuseline
