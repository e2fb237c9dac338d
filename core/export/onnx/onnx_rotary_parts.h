// Rotary position embedding in an ONNX graph, in any of the forms in which exporters write it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_numbers.h"
#include "core/export/onnx/onnx_views.h"
#include "core/support/json.h"

#include <optional>
#include <string>

namespace fuseline {

struct RotaryParts {
  OnnxView x;                        // all channels of a head, as its last axis
  std::size_t tokens = 0;            // the axis of x along which positions go up
  Json attributes = Json::object();  // but for tensor_format
  std::string output;
};

/// The rotary embedding that ends with this node. Empty: there is none, or RotaryPositionEmbedding cannot compute its
/// table of angles.
std::optional<RotaryParts> rotaryAt(const OnnxReading& reading, OnnxViews& views, OnnxNumbers& numbers,
                                    const ::onnx::NodeProto& node);

}  // namespace fuseline
