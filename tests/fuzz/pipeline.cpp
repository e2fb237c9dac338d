// Pipeline files: read, lowered, and written back.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/diagnostic.h"
#include "core/document/file_format.h"
#include "core/lowering/lowering.h"
#include "tests/fuzz/fuzz.h"

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const LoadedDocument loaded = parseDocument(fuzz::textOf(data, size));
  if (loaded.isUnreadable) return 0;
  lower(loaded.document);
  if (hasErrors(loaded.diagnostics)) return 0;
  const std::string text = serialize(loaded.document);
  const LoadedDocument again = parseDocument(text);
  fuzz::expect(!hasErrors(again.diagnostics) && serialize(again.document) == text);
  return 0;
}
