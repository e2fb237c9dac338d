// Files of tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/safetensors.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::textOf(data, size));
  const Result<NamedTensors> tensors = readSafetensors(file.path());
  fuzz::expect(!tensors || safetensorsIndex(file.path()));  // tensors of foreign dtypes are in the index only
  return 0;
}
