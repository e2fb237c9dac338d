// Fills the caches of the backend's cores with unused data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <memory>

namespace fuseline::cpu {

/// Every thread reads twice as much memory as a last-level cache holds, and so fills its private caches, too; at most 1
/// GiB in total. Errors: no memory.
Result<std::unique_ptr<CacheFiller>> makeCacheFiller(int threads);

}  // namespace fuseline::cpu
