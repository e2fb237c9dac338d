// Options of measuring to the settings of a run.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/measuring_options.h"

#include <filesystem>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

Result<void> checkDevice(const std::string& device) {
  if (!isPlannedArchitecture(device)) return {};
  return Error{fmt::format("{} is an architecture to plan for, not a device. Use it with fuse, explain or infer; "
                           "`fuseline devices` lists devices.",
                           device),
               ErrorKind::NoDevice};
}

}  // namespace

Result<PipelineRunOptions> pipelineRunOptions(const MeasuringOptions& options) {
  if (Result<void> device = checkDevice(options.spec.device); !device) return device.error();
  if (Result<void> fits = checkSpec(options.spec); !fits) return fits.error();
  return PipelineRunOptions{.settings = options.spec, .switches = options.switches};
}

std::string pipelineNameOf(const PipelineOptions& options) {
  return std::filesystem::path(options.file).stem().string();
}

}  // namespace fuseline::cli
