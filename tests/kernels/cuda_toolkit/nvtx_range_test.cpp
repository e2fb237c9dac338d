// What a tool hears of the ranges: this program is its own tool, as NVTX lets one be linked in.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/nvtx_range.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

struct HeardRange {
  nvtxDomainHandle_t domain;
  std::string text;
  int payloadType;
  std::int64_t payload;
  bool isOpen = true;
};

/// What was heard, in a process that makes domains when it likes.
struct Heard {
  std::vector<std::string> domains;
  std::vector<HeardRange> ranges;
};

Heard& heard() {
  static Heard all;
  return all;
}

/// The handle of a domain is its number, from 1.
nvtxDomainHandle_t NVTX_API createDomain(const char* name) {
  heard().domains.emplace_back(name);
  return reinterpret_cast<nvtxDomainHandle_t>(heard().domains.size());
}

int NVTX_API pushRange(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  EXPECT_EQ(range->messageType, NVTX_MESSAGE_TYPE_ASCII);
  heard().ranges.push_back({domain, range->message.ascii, range->payloadType, range->payload.llValue});
  return 0;
}

int NVTX_API popRange(nvtxDomainHandle_t domain) {
  EXPECT_EQ(heard().ranges.back().domain, domain);
  heard().ranges.back().isOpen = false;
  return 0;
}

template <class Function>
void listen(NvtxFunctionTable table, NvtxCallbackIdCore2 id, Function* function) {
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

int NVTX_API initialize(NvtxGetExportTableFunc_t exportTable) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(exportTable(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  listen(table, NVTX_CBID_CORE2_DomainCreateA, createDomain);
  listen(table, NVTX_CBID_CORE2_DomainRangePushEx, pushRange);
  listen(table, NVTX_CBID_CORE2_DomainRangePop, popRange);
  return 1;
}

/// Before the first call of NVTX, which looks for a tool once.
[[maybe_unused]] const bool kIsHeard = (InitializeInjectionNvtx2_fnptr = initialize) != nullptr;

}  // namespace

namespace fuseline::cuda {
namespace {

TEST(NvtxRange, TellsAToolTheStepAndItsBytesInADomainOfOurs) {
  {
    const NvtxRange range("fc1 (BasicLinear, forward) [32, 48] bf16", 12288);
    ASSERT_FALSE(heard().ranges.empty());
    EXPECT_TRUE(heard().ranges.back().isOpen);
  }
  const HeardRange& range = heard().ranges.back();
  EXPECT_FALSE(range.isOpen);
  EXPECT_EQ(range.text, "fc1 (BasicLinear, forward) [32, 48] bf16");
  EXPECT_EQ(range.payloadType, NVTX_PAYLOAD_TYPE_INT64);
  EXPECT_EQ(range.payload, 12288);
  EXPECT_EQ(heard().domains.at(reinterpret_cast<std::size_t>(range.domain) - 1), "Fuseline");
}

TEST(NvtxRange, StaysInOneDomain) {
  { const NvtxRange first("a"); }
  const nvtxDomainHandle_t domain = heard().ranges.back().domain;
  const std::size_t numDomains = heard().domains.size();
  { const NvtxRange second("b"); }
  EXPECT_EQ(heard().ranges.back().domain, domain);
  EXPECT_EQ(heard().domains.size(), numDomains);
}

}  // namespace
}  // namespace fuseline::cuda
