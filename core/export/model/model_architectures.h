// The architectures whose configs become pipelines. One file each, and its line in architectures/CMakeLists.txt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/model/model_config.h"
#include "core/export/model/model_form.h"

#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

struct ModelArchitecture {
  std::vector<std::string> modelTypes;  // values of model_type
  /// Asks for every key that it knows. Problems are in the config afterwards.
  ModelForm (*form)(const ModelConfig&) = nullptr;
};

/// nullptr: there is none.
const ModelArchitecture* findArchitecture(std::string_view modelType);
/// Every model_type, in the order of the table.
std::vector<std::string> knownModelTypes();

}  // namespace fuseline
