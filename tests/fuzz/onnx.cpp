// ONNX models: those that Fuseline wrote, and others.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_import.h"
#include "tests/fuzz/fuzz.h"

#include <string>

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(fuzz::textOf(data, size));
  (void)importOnnxModel(bytes, "model");
  (void)importOnnxModel(bytes, "model", {.keepsFlat = true, .takesWeights = true});
  return 0;
}
