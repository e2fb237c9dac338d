// The options that verbs share which run a pipeline to measure it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/pipeline_options.h"
#include "core/runtime/pipeline_run.h"

#include <cstdint>
#include <string>

namespace fuseline::cli {

struct MeasuringOptions : PipelineOptions {
  std::string iterations = "auto";
  int warmup = 3;
  std::uint64_t seed = 0;
  std::string timing = "auto";
  bool replays = true;
  bool startsCold = false;
  bool measuresRoofs = true;
  bool isQuiet = false;
};

/// --seed, an integer from 0 to 2^64 - 1.
CLI::Option* addSeedOption(CLI::App& verb, std::uint64_t& seed, const std::string& help);
/// --iterations, --warmup, --seed, --timing, --no-replay, --cold.
void addMeasuringOptions(CLI::App& verb, MeasuringOptions& options);
/// --no-roofs, or --roofs where they are not measured unless somebody asks for them.
void addRoofsOption(CLI::App& verb, MeasuringOptions& options);

/// Errors: (NoDevice) an architecture to plan for; (Usage) what cannot be read as a setting.
Result<PipelineRunOptions> pipelineRunOptions(const MeasuringOptions& options);

/// What runs of a file are called: "mlp" of "models/mlp.fuseline".
std::string pipelineNameOf(const PipelineOptions& options);

}  // namespace fuseline::cli
