// Fills the caches of the backend's cores with unused data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <memory>

namespace fuseline::cpu {

/// Every thread goes over twice as much memory as a last-level cache holds, its private caches with it; at most 1 GiB
/// in all. Errors: no memory.
Result<std::unique_ptr<CacheFiller>> makeCacheFiller(int threads);

}  // namespace fuseline::cpu
