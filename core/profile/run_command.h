// The command lines that repeat a run: in a shell, in CI, under a profiler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/profile/shape_sweep.h"

#include <string>
#include <string_view>

namespace fuseline {

/// 'it'\''s': one word of a POSIX shell, quoted if necessary.
std::string shellWord(std::string_view text);

/// "fuseline run mlp.fuseline --device cuda:0 --timing cupti": options that are not given come from the file. tensors:
/// a safetensors file; may be empty.
std::string runCommand(const RunSpec& settings, std::string_view file, std::string_view tensors = {});

/// The command that repeats a run, from the settings in its record.
std::string repeatCommand(const RunSpec& settings, const RuleSwitches& switches, std::string_view file);

/// "fuseline sweep mlp.fuseline --over M=128:4096:x2 --over recipe=None,MXFP8BlockScaling --device cuda:0". A setting
/// with an axis is not given separately. Every recipe of the sweep has a name.
std::string sweepCommand(const ShapeSweep& sweep, RunSpec settings, std::string_view file);

/// The same under Nsight Systems, which shows a range a step, in CUDA graphs, too. It traces by itself, so that the run
/// does not time its steps.
std::string nsysCommand(RunSpec settings, std::string_view file, std::string_view tensors = {});

}  // namespace fuseline
