// A file of JSON lines: whatever ends a long measurement, the lines before it are there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"
#include "core/support/result.h"

#include <fstream>
#include <string>

namespace fuseline::cli {

class JsonLines {
 public:
  /// An empty name: all lines are dropped. An older file stays until there is a first line. Errors: the
  /// file exists and is not to be replaced (Usage), or cannot be written.
  static Result<JsonLines> open(const std::string& file, bool replaces);

  /// The line before all others; it is written with the first of them.
  void setHead(const Json& line) { m_head = textOf(line); }

  /// One line, on its way to the disk when this returns. Errors: the disk is full.
  Result<void> write(const Json& line);

 private:
  static std::string textOf(const Json& line);

  std::string m_name;
  std::string m_head;
  std::ofstream m_stream;
};

}  // namespace fuseline::cli
