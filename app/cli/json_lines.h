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
  /// An empty name: all lines are dropped. Errors: the file exists and is not to be replaced (Usage), or cannot be
  /// made.
  static Result<JsonLines> open(const std::string& file, bool replaces);

  /// One line, on its way to the disk when this returns. Errors: the disk is full.
  Result<void> write(const Json& line);

 private:
  std::string m_name;
  std::ofstream m_stream;
};

}  // namespace fuseline::cli
