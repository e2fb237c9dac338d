// Ranges that Nsight Systems and other tools show, named after the steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <nvtx3/nvToolsExt.h>

namespace fuseline::cuda {

/// Everything of ours is in one domain, which tools can show or hide as a whole.
nvtxDomainHandle_t nvtxDomain();

/// From here to the end of the scope. Without a tool it is a call through a null pointer's check.
class NvtxRange {
 public:
  /// bytes: the least traffic of what it stands for, as payload.
  explicit NvtxRange(const std::string& name, std::int64_t bytes = 0);
  ~NvtxRange() { nvtxDomainRangePop(nvtxDomain()); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace fuseline::cuda
