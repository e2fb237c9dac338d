// The time of one call, for timed programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace fuseline {

template <class Function>
double secondsOf(Function function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace fuseline
