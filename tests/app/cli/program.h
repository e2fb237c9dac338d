// Runs the built program and returns its output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"
#include "core/tensor/tensor.h"
#include "tests/support/text.h"

#include <filesystem>
#include <string>

namespace fuseline::testing {

struct ProgramResult {
  int exitCode = -1;
  std::string out;
  std::string err;

  /// Throws when `out` is no JSON.
  Json json() const { return Json::parse(out); }
};

/// Runs `fuseline <arguments>` in a shell, with its standard input from `input`, in `folder`.
ProgramResult fuseline(const std::string& arguments, const std::string& input = {},
                       const std::filesystem::path& folder = ".");

/// The same for `fuseline-bench <arguments>`.
ProgramResult fuselineBench(const std::string& arguments);

/// For the shell.
std::string quoted(const std::filesystem::path& path);

/// The text of a file; empty when it is not there.
std::string readText(const std::filesystem::path& path);
void writeText(const std::filesystem::path& path, const std::string& text);
/// Null where there is none of this name.
const Tensor* findTensor(const NamedTensors& tensors, const std::string& name);

/// tests/golden/cli/<name>.
std::filesystem::path goldenPath(const std::string& name);

/// The pipeline of these tests: small, f32, with a branch and a bias.
std::string samplePipeline();

}  // namespace fuseline::testing
