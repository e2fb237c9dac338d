// Each line is flushed as it is written.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/json_lines.h"

#include "app/cli/output_file.h"

#include <fmt/format.h>

namespace fuseline::cli {

Result<JsonLines> JsonLines::open(const std::string& file, bool replaces) {
  JsonLines lines;
  if (file.empty()) return lines;
  if (Result<void> free = checkFree(file, replaces); !free) return free.error();
  lines.m_name = file;
  lines.m_stream.open(file, std::ios::trunc);
  if (!lines.m_stream) return Error{fmt::format("{}: this file cannot be written.", file)};
  return lines;
}

Result<void> JsonLines::write(const Json& line) {
  if (m_name.empty()) return {};
  m_stream << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  if (!m_stream) return Error{fmt::format("{}: this file cannot be written any further.", m_name)};
  return {};
}

}  // namespace fuseline::cli
