// Embedding, tied head and loss as modules of PyTorch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <string>

namespace fuseline {

/// Is the node an op at an end of a model, which TransformerEngine leaves to PyTorch?
bool isModelEnd(const Node& node);

/// A class of this name, as teModule() writes it. Precondition: isModelEnd().
std::string modelEndModule(const Node& node, const std::string& className);

}  // namespace fuseline
