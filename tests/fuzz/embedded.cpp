// Pipelines within other files: PNG, SVG and HTML drawings, Python scripts.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/embedded_pipeline.h"
#include "core/document/file_format.h"
#include "core/document/picture.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

#include <string>

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::textOf(data, size);
  const fuzz::MemoryFile file(bytes);
  (void)loadDocument(file.path());
  (void)pipelineIn(bytes);
  (void)embeddedText(bytes);
  (void)pipelineIn(withPipeline(std::string(bytes), "{}"));
  return 0;
}
