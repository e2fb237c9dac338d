// Readers of extra outputs of bypassed ops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/lowering/section.h"

#include <cstddef>
#include <string>
#include <unordered_map>

namespace fuseline {

/// The reader of an extra output of a bypassed op.
struct ExtraReader {
  std::string port;
  std::string by;  // "add.extra", "output y"
};
/// By op.
using ExtraReaders = std::unordered_map<std::size_t, ExtraReader>;
ExtraReaders findExtraReaders(const Section& section);

}  // namespace fuseline
