// Sparse initializers of an ONNX graph as dense ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <filesystem>

namespace fuseline {

/// Those with an index outside, or of very many elements, stay. folder: of external data.
void fillSparseConstants(::onnx::GraphProto& graph, const std::filesystem::path& folder);

}  // namespace fuseline
