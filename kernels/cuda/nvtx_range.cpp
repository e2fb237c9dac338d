// The domain "Fuseline" and pushes into it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/nvtx_range.h"

namespace fuseline::cuda {

nvtxDomainHandle_t nvtxDomain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("Fuseline");
  return domain;
}

NvtxRange::NvtxRange(const std::string& name, std::int64_t bytes) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = bytes;
  nvtxDomainRangePushEx(nvtxDomain(), &attributes);
}

}  // namespace fuseline::cuda
