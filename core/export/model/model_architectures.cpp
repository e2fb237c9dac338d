// Collects the architectures that the manifest lists.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/model_architectures.h"

#include <algorithm>

namespace fuseline {

namespace architectures {
#define FUSELINE_CATALOG_ENTRY(name) ModelArchitecture name();
#include "core/export/model/architectures/architectures.inc"
#undef FUSELINE_CATALOG_ENTRY
}  // namespace architectures

namespace {

const std::vector<ModelArchitecture>& allArchitectures() {
  static const std::vector<ModelArchitecture> all = {
#define FUSELINE_CATALOG_ENTRY(name) architectures::name(),
#include "core/export/model/architectures/architectures.inc"
#undef FUSELINE_CATALOG_ENTRY
  };
  return all;
}

}  // namespace

const ModelArchitecture* findArchitecture(std::string_view modelType) {
  const std::vector<ModelArchitecture>& all = allArchitectures();
  const auto found = std::ranges::find_if(all, [&](const ModelArchitecture& each) {
    return std::ranges::find(each.modelTypes, modelType) != each.modelTypes.end();
  });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> knownModelTypes() {
  std::vector<std::string> types;
  for (const ModelArchitecture& each : allArchitectures())
    types.insert(types.end(), each.modelTypes.begin(), each.modelTypes.end());
  return types;
}

}  // namespace fuseline
