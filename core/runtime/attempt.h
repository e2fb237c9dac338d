// Calls of a backend that may throw, as results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <exception>

namespace fuseline {

/// Backends throw when a device fails while they wait for it or copy; their messages name the device and the step.
template <class Action>
Result<void> attempt(Action action) {
  try {
    action();
  } catch (const std::exception& problem) {
    return Error{problem.what(), ErrorKind::RunFailed};
  }
  return {};
}

}  // namespace fuseline
