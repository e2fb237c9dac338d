// Which libraries of the CUDA toolkit are used here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/trace/cupti.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::cuda {

/// "13.1.0" from 130100, as cublasLtGetVersion() answers.
std::string formatCublasVersion(std::size_t version);

/// Facts for run files: {"cuBLASLt", "13.1.0"}, {"NVRTC", "13.0"}; "missing" where one is. Loads them.
std::vector<std::pair<std::string, std::string>> libraryVersions();

/// The number of its interface, as CUPTI has no other: "130000".
std::string versionOf(const Cupti& cupti);

}  // namespace fuseline::cuda
