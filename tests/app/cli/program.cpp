// Starts the program through the shell with its streams in files.
// SPDX-License-Identifier: Apache-2.0
#include "tests/app/cli/program.h"

#include "tests/support/temporary_folder.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace fuseline::testing {

// The tests may be started from a narrow terminal.
[[maybe_unused]] const int kWithoutColumns = unsetenv("COLUMNS");

std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

std::string readText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const Tensor* findTensor(const NamedTensors& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &NamedTensors::value_type::first);
  return found == tensors.end() ? nullptr : &found->second;
}

void writeText(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

namespace {

ProgramResult outputOf(const char* program, const std::string& arguments, const std::string& input,
                       const std::filesystem::path& folder) {
  const TemporaryFolder streams;
  writeText(streams / "in", input);
  const std::string command = "cd " + quoted(folder) + " && " + quoted(program) + " " + arguments + " <" +
                              quoted(streams / "in") + " >" + quoted(streams / "out") + " 2>" + quoted(streams / "err");
  const int status = std::system(command.c_str());
  return {.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = readText(streams / "out"),
          .err = readText(streams / "err")};
}

}  // namespace

ProgramResult fuseline(const std::string& arguments, const std::string& input, const std::filesystem::path& folder) {
  return outputOf(FUSELINE_PROGRAM, arguments, input, folder);
}

ProgramResult fuselineBench(const std::string& arguments) {
  return outputOf(FUSELINE_BENCH_PROGRAM, arguments, {}, ".");
}

std::filesystem::path goldenPath(const std::string& name) {
  return std::filesystem::path(FUSELINE_SOURCE_DIR) / "tests/golden/cli" / name;
}

std::string samplePipeline() { return "'" + goldenPath("sample.fuseline").string() + "'"; }

}  // namespace fuseline::testing
