// Each line is flushed as it is written.
// SPDX-License-Identifier: Apache-2.0
#include "app/bench/json_lines.h"

#include "app/cli/output_file.h"
#include "core/support/atomic_file.h"

#include <fmt/format.h>

namespace fuseline::cli {

Result<JsonLines> JsonLines::open(const std::string& file, bool replaces) {
  JsonLines lines;
  if (file.empty()) return lines;
  if (Result<void> free = checkFree(file, replaces); !free) return free.error();
  lines.m_name = file;
  if (Result<void> writable = checkWritable(file); !writable) return writable.error();
  return lines;
}

std::string JsonLines::textOf(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<void> JsonLines::write(const Json& line) {
  if (m_name.empty()) return {};
  if (!m_stream.is_open()) {
    m_stream.open(m_name, std::ios::trunc);
    m_stream << m_head;
  }
  m_stream << textOf(line) << std::flush;
  if (!m_stream) return Error{fmt::format("{}: writing this file failed. The disk may be full.", m_name)};
  return {};
}

}  // namespace fuseline::cli
