// Configs of models of other programs.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/model_import.h"
#include "tests/fuzz/fuzz.h"

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)importModelConfig(fuzz::textOf(data, size), "config.json", {.layers = 1});
  return 0;
}
