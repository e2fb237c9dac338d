// The part of `fuseline run` that looks at tensors: its options, its table and its files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/context.h"
#include "core/plan/capturable_tensors.h"
#include "core/profile/tensor_statistics.h"
#include "core/tensor/tensor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline::cli {

struct CaptureOptions {
  std::vector<std::string> names;  // of tensors and ops, or lists of them between commas
  std::string output;              // *.safetensors, *.npy of one tensor, or a folder of .npy files; empty: none
  std::int64_t limitMiB = kCaptureLimitBytes >> 20;
  bool listsOnly = false;
};

/// --capture, --captured, --capture-limit, --capture-list.
void addCaptureOptions(CLI::App& verb, CaptureOptions& options);

/// Before anything is measured; makes the folder that files shall go to.
/// Errors: there is nothing to write, or it cannot be written there.
Result<void> checkCaptureFiles(const CaptureOptions& options);

/// Errors (Usage): as chooseTensors() and checkCaptureSize(), with the option that helps; several tensors for one .npy.
Result<TensorChoice> chosenTensors(const Graph& graph, const std::vector<CapturableTensor>& all,
                                   const CaptureOptions& options);

/// Errors (Usage): a file that would be written exists, and is not to be replaced.
Result<void> checkCapturedFree(const TensorChoice& choice, const CaptureOptions& options, bool replaces);

/// Fits 120 columns. missing: of the ops that were named, what no memory holds.
std::string captureTable(const std::vector<TensorSummary>& summaries, const std::vector<CapturableTensor>& missing,
                         bool hasColour);
/// Tensors that can be captured, and those that cannot.
std::string capturableTable(const std::vector<CapturableTensor>& tensors, bool hasColour);
Json toJson(const std::vector<CapturableTensor>& tensors);
Json capturableSchema();

/// By the ending of the name. Nothing where there is no file.
Result<void> writeCaptured(const NamedTensors& tensors, const CaptureOptions& options);

}  // namespace fuseline::cli
