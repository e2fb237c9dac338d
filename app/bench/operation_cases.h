// Cases of suite "ops" of fuseline-bench: pipelines of one op, and of layers around what moves data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/file_format.h"
#include "core/ops/operation.h"
#include "core/runtime/pipeline_run.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline::cli {

/// A pipeline of the suite.
struct OperationCase {
  std::string name;  // of the op, or of the layer
  std::string dtype;
  std::string recipe = {};                      // of a layer
  const FusibleOperation* operation = nullptr;  // nullptr: a layer
  std::int64_t cols = 4096;                     // of the tensors
  auto operator<=>(const OperationCase&) const = default;
};

enum class OperationSizes { Quick, Cpu, Gpu };

/// Every basic op in float32 and bf16, as it is by itself; norms also on rows that kernels hold in another way, and on
/// such as are no whole packets.
std::vector<OperationCase> operationCases();
/// Norms and activations in bf16 as they are in a layer: fused, and writing the quantized copies that a linear layer
/// wants under each recipe. Its products are thin, so that they are no more than what the copies are made for.
std::vector<OperationCase> layerCases();

LoadedDocument documentFor(const OperationCase& what, OperationSizes sizes);
PipelineRunOptions optionsFor(const OperationCase& what, const std::string& device, OperationSizes sizes);

/// Is it what the case is about? Of an op every step; of a layer the steps that move its large tensors, as they are in
/// the fused plan, quantizing alone as it is in the unfused one, and the update of scales.
bool isMeasured(const OperationCase& what, const std::string& variant, const StepRecord& step);

}  // namespace fuseline::cli
