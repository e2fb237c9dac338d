// Checks scalings and options of quantizers.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/cuda_quantizers.h"

#include "core/tensor/scaling.h"

#include <fmt/format.h>

namespace fuseline {

Verdict isQuantizedByCuda(const TensorQuantizers& quantizers) {
  const auto& [rowwise, columnwise, isDequantized] = quantizers;
  if ((rowwise && rowwise->fourOverSix) || (columnwise && columnwise->fourOverSix))
    return Verdict::no("The CUDA backend does not support 4over6 for NVFP4: the largest value of a block maps to 6.");
  if ((rowwise && rowwise->scaling == Scaling::NvRow1x16) || (columnwise && columnwise->scaling == Scaling::NvRow1x16))
    return Verdict::no("The CUDA backend quantizes NVFP4 with one float32 scale per tensor, not with one per row.");
  if (columnwise && columnwise->isOfRowwise)
    return Verdict::no(
        "The CUDA backend does not support columnwise_source rowwise_dequantized: it quantizes rowwise and columnwise "
        "values from the same tensor.");
  if (!rowwise || !columnwise || rowwise->scaling == columnwise->scaling) return Verdict::yes();
  return Verdict::no(
      fmt::format("The CUDA backend quantizes rowwise and columnwise tensors with one scaling, not with {} and {}.",
                  traitsOf(rowwise->scaling).name, traitsOf(columnwise->scaling).name));
}

std::optional<std::string> notQuantizedByCuda(const Graph& graph) {
  for (const Node& node : graph.nodes())
    for (const TensorQuantizers* tensor :
         {&node.quantizers.input, &node.quantizers.weight, &node.quantizers.gradOutput})
      if (const Verdict fits = isQuantizedByCuda(*tensor); !fits) return fmt::format("{}: {}", node.id, fits.reason());
  return std::nullopt;
}

}  // namespace fuseline
