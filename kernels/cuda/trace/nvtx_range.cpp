// The domain "Fuseline", the schema of its payloads, and pushes into it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/trace/nvtx_range.h"

#include "core/runtime/executor.h"

#include <array>
#include <cstddef>

#include <nvtx3/nvToolsExtPayload.h>

namespace fuseline::cuda {

namespace {

nvtxPayloadSchemaEntry_t field(const char* name, std::uint64_t type, std::size_t offset) {
  nvtxPayloadSchemaEntry_t entry{};
  entry.name = name;
  entry.type = type;
  entry.offset = offset;
  return entry;
}

std::uint64_t registerSchema() {
  constexpr std::uint64_t kText = NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE;
  constexpr std::uint64_t kCount = NVTX_PAYLOAD_ENTRY_TYPE_INT64;
  const std::array entries = {field("step", kText, offsetof(NvtxStepPayload, step)),
                              field("kernel", kText, offsetof(NvtxStepPayload, kernel)),
                              field("pass", kText, offsetof(NvtxStepPayload, pass)),
                              field("writes", kText, offsetof(NvtxStepPayload, writes)),
                              field("bytes", kCount, offsetof(NvtxStepPayload, bytes)),
                              field("flops", kCount, offsetof(NvtxStepPayload, flops))};
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
  schema.name = "Fuseline step";
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries.data();
  schema.numEntries = entries.size();
  schema.payloadStaticSize = sizeof(NvtxStepPayload);
  return nvtxPayloadSchemaRegister(nvtxDomain(), &schema);
}

/// 0: no tool, or one that knows no schemas.
std::uint64_t stepSchema() {
  static const std::uint64_t schema = registerSchema();
  return schema;
}

nvtxStringHandle_t handleOf(const std::string& text) { return nvtxDomainRegisterStringA(nvtxDomain(), text.c_str()); }

nvtxEventAttributes_t namedRange(const std::string& name) {
  nvtxEventAttributes_t range{};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = name.c_str();
  return range;
}

}  // namespace

nvtxDomainHandle_t nvtxDomain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("Fuseline");
  return domain;
}

NvtxLabel::NvtxLabel(const Plan& plan, const Step& step, const std::string& rank)
    : m_name(rank + rangeName(plan, step)),
      m_payload{.bytes = step.bytesRead + step.bytesWritten, .flops = step.flops} {
  if (stepSchema() == 0) return;
  m_payload.step = handleOf(step.name);
  m_payload.kernel = handleOf(step.kernel);
  m_payload.pass = handleOf(std::string(phaseName(step.phase)));
  m_payload.writes = handleOf(firstWritten(plan, step));
}

NvtxRange::NvtxRange(const NvtxLabel& label) {
  nvtxEventAttributes_t range = namedRange(label.m_name);
  nvtxPayloadData_t payload{};
  if (const std::uint64_t schema = stepSchema(); schema != 0) {
    NVTX_PAYLOAD_EVTATTR_SET_DATA(range, &payload, schema, &label.m_payload, sizeof(NvtxStepPayload))
  } else {
    range.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    range.payload.llValue = label.m_payload.bytes;
  }
  nvtxDomainRangePushEx(nvtxDomain(), &range);
}

NvtxRange::NvtxRange(const std::string& name) {
  const nvtxEventAttributes_t range = namedRange(name);
  nvtxDomainRangePushEx(nvtxDomain(), &range);
}

}  // namespace fuseline::cuda
