// Reads the embedded copy.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/run_pipeline.h"

namespace fuseline {

LoadedDocument pipelineOf(const RunRecord& record) {
  return parseDocument(record.pipeline.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace fuseline
