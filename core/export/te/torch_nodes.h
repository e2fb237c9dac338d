// The nodes that an External keeps of an ONNX model, as a module of PyTorch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace fuseline {

/// A class of this name without parameters, whose forward takes the inputs of the External and returns its outputs.
/// Nothing: PyTorch has no short form for one of the nodes, they read inputs of the model or large constants, or the
/// text cannot be parsed.
std::optional<std::string> torchNodes(const std::string& nodes, const std::string& className, std::size_t numInputs,
                                      std::size_t numOutputs);

}  // namespace fuseline
