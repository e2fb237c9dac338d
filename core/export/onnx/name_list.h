// Names in a sentence, shortened if there are many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace fuseline {

/// "fc1, fc2", or the first few "and 96 more".
std::string nameList(const std::vector<std::string>& names);

}  // namespace fuseline
