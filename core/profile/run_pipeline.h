// The pipeline that a run has with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/file_format.h"
#include "core/profile/run_record.h"

namespace fuseline {

/// Includes its problems: runs may have been written by hand.
inline LoadedDocument pipelineOf(const RunRecord& record) { return readDocument(record.pipeline); }

}  // namespace fuseline
