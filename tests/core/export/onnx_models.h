// Models of ONNX as bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_proto.h"

#include <stdexcept>
#include <string>

namespace fuseline::testing {

/// The model as written by another program: without Fuseline's metadata.
inline std::string withoutMetadata(const std::string& bytes) {
  ::onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) throw std::invalid_argument("no model");
  model.clear_metadata_props();
  return model.SerializeAsString();
}

}  // namespace fuseline::testing
