// Joins names.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/name_list.h"

#include <fmt/format.h>

namespace fuseline {

std::string nameList(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 12, kLongest = 64;  // a message has up to 200 characters
  std::string list;
  std::size_t count = 0;
  for (; count < names.size() && count < kMost; ++count) {
    if (count > 0 && list.size() + names[count].size() > kLongest) break;
    list += (count == 0 ? "" : ", ") + names[count];
  }
  return count == names.size() ? list : fmt::format("{} and {} more", list, names.size() - count);
}

}  // namespace fuseline
