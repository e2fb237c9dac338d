// Leaves out what comes before a kernel's own name, and its arguments.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/kernel_name.h"

#include "ui/theme/format.h"

#include <algorithm>

namespace fuseline::ui {

QString shortKernelName(std::string_view name) {
  const std::size_t arguments = std::min(name.find('('), name.size());
  name = name.substr(0, arguments);
  const std::size_t plainEnd = std::min(name.find('<'), name.size());
  const std::size_t scope = name.substr(0, plainEnd).rfind("::");
  const std::size_t result = name.substr(0, plainEnd).rfind(' ');
  if (scope != std::string_view::npos) return toQt(name.substr(scope + 2));
  return name.starts_with("void ") ? toQt(name.substr(result + 1)) : toQt(name);
}

}  // namespace fuseline::ui
