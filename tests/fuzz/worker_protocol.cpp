// Lines of the worker protocol, in both directions.
// SPDX-License-Identifier: Apache-2.0
#include "core/worker/protocol.h"
#include "tests/fuzz/fuzz.h"

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line = fuzz::textOf(data, size);
  requestId(line);
  if (const Result<WorkerRequest> request = decodeRequest(line))
    fuzz::expect(decodeRequest(encode(*request)).hasValue());
  if (const Result<WorkerEvent> event = decodeEvent(line)) fuzz::expect(decodeEvent(encode(*event)).hasValue());
  return 0;
}
