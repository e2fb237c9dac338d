// Ranges that Nsight Systems and other tools show, named after the steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <cstdint>
#include <string>

#include <nvtx3/nvToolsExt.h>

namespace fuseline::cuda {

/// Everything of ours is in one domain, which tools can show or hide as a whole.
nvtxDomainHandle_t nvtxDomain();

/// Payload of a range, for tools that know NVTX payload schemas: they show each field with its name, and filter and
/// sort by it. The texts are handles registered with the tool.
struct NvtxStepPayload {
  nvtxStringHandle_t step = nullptr;
  nvtxStringHandle_t kernel = nullptr;
  nvtxStringHandle_t pass = nullptr;
  nvtxStringHandle_t writes = nullptr;
  std::int64_t bytes = 0;
  std::int64_t flops = 0;
};

/// The name and the payload of a step's ranges, created once. Tools that know no schemas get the bytes alone.
class NvtxLabel {
 public:
  /// rank: "rank 1: ", before the name; empty where there is only one.
  NvtxLabel(const Plan& plan, const Step& step, const std::string& rank = {});
  /// "fc1.linear (BasicLinear, forward) [4096, 4096] bf16".
  const std::string& name() const { return m_name; }

 private:
  friend class NvtxRange;
  std::string m_name;
  NvtxStepPayload m_payload;
};

/// From here to the end of the scope. Without a tool it is a call through a null pointer's check.
class NvtxRange {
 public:
  explicit NvtxRange(const NvtxLabel& label);
  /// A range without a step.
  explicit NvtxRange(const std::string& name);
  ~NvtxRange() { nvtxDomainRangePop(nvtxDomain()); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace fuseline::cuda
