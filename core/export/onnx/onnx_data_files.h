// The files beside an ONNX model that hold tensors of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace fuseline {

/// Places as the model says them, each once; they need not be there. None where the file is no model or cannot be read.
std::vector<std::filesystem::path> onnxDataFiles(const std::filesystem::path& model);

}  // namespace fuseline
