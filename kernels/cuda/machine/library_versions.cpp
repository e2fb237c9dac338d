// Asks each library for its version.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/library_versions.h"

#include "kernels/cuda/attention/cudnn.h"
#include "kernels/cuda/elementwise/nvrtc_compiler.h"
#include "kernels/cuda/gemm/cublaslt.h"

#include <cstdint>

#include <fmt/format.h>

namespace fuseline::cuda {

std::string formatCublasVersion(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::vector<std::pair<std::string, std::string>> libraryVersions() {
  const Result<CublasLt> cublasLt = loadCublasLt();
  const Result<std::string> nvrtc = nvrtcVersionText();
  const Result<Cudnn> cudnn = loadCudnn();
  return {{"cuBLASLt", cublasLt ? formatCublasVersion(cublasLt->version()) : "missing"},
          {"NVRTC", nvrtc ? *nvrtc : "missing"},
          {"cuDNN", cudnn ? formatCublasVersion(cudnn->version()) : "missing"}};
}

std::string versionOf(const Cupti& cupti) {
  std::uint32_t version = 0;
  return cupti.version(&version) == CUPTI_SUCCESS ? fmt::format("{}", version) : "unknown";
}

}  // namespace fuseline::cuda
