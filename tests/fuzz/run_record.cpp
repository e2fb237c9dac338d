// Run files, and their exports as text.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_record.h"
#include "core/export/exporter.h"
#include "core/profile/run_comparison.h"
#include "core/support/json_fields.h"
#include "tests/fuzz/fuzz.h"

using namespace fuseline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<Json> json = parseJson(fuzz::textOf(data, size));
  if (!json) return 0;
  const Result<RunRecord> record = runRecordFromJson(*json);
  if (!record) return 0;
  (void)compareRuns(*record, *record);
  for (const Exporter& exporter : exporters()) (void)exporter.writeWith(*record, {}, {});
  return 0;
}
