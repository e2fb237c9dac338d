// RunOptions: number of rounds, inputs and other options of a run, except its device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <cstdint>

namespace fuseline::ui {

/// Those of RunSettings.
struct RunOptions {
  int warmup = RunSettings().warmup;
  int iterations = 0;  // rounds; 0: until the ratio is known well
  std::uint64_t seed = 0;
  bool replays = true;
  bool startsCold = false;

  void applyTo(RunSettings& settings) const {
    settings.warmup = warmup;
    settings.iterations = iterations;
    settings.seed = seed;
    settings.replays = replays;
    settings.startsCold = startsCold;
  }
  bool operator==(const RunOptions&) const = default;
};

}  // namespace fuseline::ui
