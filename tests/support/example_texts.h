// The example files as texts, and documents that most tests begin with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/file_format.h"
#include "core/lowering/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace fuseline::testing {

inline std::string readFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::filesystem::path examplesFolder() {
  return std::filesystem::path(FUSELINE_SOURCE_DIR) / "resources" / "examples";
}

inline std::vector<std::filesystem::path> exampleFiles() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(examplesFolder()))
    if (entry.path().extension() == ".fuseline") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// A file around the text of "pipeline"; symbols are M = 8, H = 16, F = 32.
inline std::string fileWith(const std::string& pipeline) {
  return R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0},
"symbols": {"M": 8, "H": 16, "F": 32},
"pipeline": )" +
         pipeline + "}";
}

/// x: [M, H] bf16 -> the given ops, wires and output.
inline std::string pipelineText(const std::string& ops, const std::string& wires, const std::string& from) {
  return fileWith(R"({"inputs": [{"id": "x", "dtype": "bf16", "shape": ["M", "H"]}],
"ops": [)" + ops + "],\n\"wires\": [" +
                  wires + "],\n\"outputs\": [{\"id\": \"y\", \"from\": \"" + from + "\"}]}");
}

inline std::vector<std::string> codes(const std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string> found;
  for (const Diagnostic& diagnostic : diagnostics) found.push_back(diagnostic.code);
  return found;
}

/// Everything `fuseline validate` would list.
inline std::vector<Diagnostic> problems(const std::string& text) {
  LoadedDocument loaded = parseDocument(text);
  LoweredGraph lowered = lower(loaded.document, {}, &loaded.sourceMap);
  std::ranges::copy(lowered.diagnostics, std::back_inserter(loaded.diagnostics));
  return loaded.diagnostics;
}

inline std::string listed(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += toString(diagnostic, "file") + "\n";
  return text;
}

}  // namespace fuseline::testing
