// The ranges that a tool receives: this program is its own tool, which NVTX allows to be linked in.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/trace/nvtx_range.h"

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nvtx3/nvToolsExtPayload.h>

namespace {

struct HeardRange {
  nvtxDomainHandle_t domain;
  std::string text;
  std::map<std::string, std::string> fields;
  bool isOpen = true;
};

struct HeardField {
  std::string name;
  std::uint64_t type = 0;
  std::uint64_t offset = 0;
};

/// Received events, in a process that creates domains at any time.
struct Heard {
  std::vector<std::string> domains;
  std::vector<std::string> texts;
  std::vector<HeardField> schema;
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

/// The handle of a text is its number, from 1.
nvtxStringHandle_t NVTX_API registerText(nvtxDomainHandle_t, const char* text) {
  heard().texts.emplace_back(text);
  return reinterpret_cast<nvtxStringHandle_t>(heard().texts.size());
}

constexpr std::uint64_t kSchema = NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START + 7;

std::uint64_t NVTX_API registerSchema(nvtxDomainHandle_t, const nvtxPayloadSchemaAttr_t* schema) {
  EXPECT_STREQ(schema->name, "Fuseline step");
  EXPECT_EQ(schema->type, std::uint64_t{NVTX_PAYLOAD_SCHEMA_TYPE_STATIC});
  for (const nvtxPayloadSchemaEntry_t& entry : std::span(schema->entries, schema->numEntries))
    heard().schema.push_back({entry.name, entry.type, entry.offset});
  return kSchema;
}

template <class T>
T valueAt(const void* payload, std::uint64_t offset) {
  T value{};
  std::memcpy(&value, static_cast<const std::byte*>(payload) + offset, sizeof(value));
  return value;
}

/// A payload as a tool reads it: by the schema alone.
std::map<std::string, std::string> fieldsOf(const nvtxPayloadData_t& data) {
  EXPECT_EQ(data.schemaId, kSchema);
  std::map<std::string, std::string> fields;
  for (const HeardField& field : heard().schema)
    fields[field.name] = field.type == NVTX_PAYLOAD_ENTRY_TYPE_INT64
                             ? std::to_string(valueAt<std::int64_t>(data.payload, field.offset))
                             : heard().texts.at(valueAt<std::size_t>(data.payload, field.offset) - 1);
  return fields;
}

int NVTX_API pushRange(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  EXPECT_EQ(range->messageType, NVTX_MESSAGE_TYPE_ASCII);
  HeardRange& pushed = heard().ranges.emplace_back(HeardRange{domain, range->message.ascii, {}});
  if (range->payloadType == NVTX_PAYLOAD_TYPE_EXT)
    pushed.fields = fieldsOf(*reinterpret_cast<const nvtxPayloadData_t*>(range->payload.ullValue));
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
  listen(table, NVTX_CBID_CORE2_DomainRegisterStringA, registerText);
  listen(table, NVTX_CBID_CORE2_DomainRangePushEx, pushRange);
  listen(table, NVTX_CBID_CORE2_DomainRangePop, popRange);
  return 1;
}

int NVTX_API initializeExtension(nvtxExtModuleInfo_t* module) {
  if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID) return 0;
  module->segments[0].functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] =
      reinterpret_cast<intptr_t>(&registerSchema);
  return 1;
}

/// Before the first call of NVTX, which looks for a tool once.
[[maybe_unused]] const bool kIsHeard = (InitializeInjectionNvtx2_fnptr = initialize) != nullptr;
[[maybe_unused]] const bool kIsHeardInFields =
    (InitializeInjectionNvtxExtension_fnptr = initializeExtension) != nullptr;

}  // namespace

namespace fuseline::cuda {
namespace {

TEST(NvtxRange, TellsAToolTheStepInADomainOfOurs) {
  Plan plan;
  plan.tensors = {{.name = "y", .spec = {DType::BF16, {32, 48}}}};
  Step step;
  step.name = "fc1";
  step.kernel = "BasicLinear";
  step.operands = {{.tensor = 0, .access = OperandAccess::Write}};
  step.bytesRead = 8192;
  step.bytesWritten = 4096;
  step.flops = 77;
  const NvtxLabel label(plan, step);
  {
    const NvtxRange range(label);
    ASSERT_FALSE(heard().ranges.empty());
    EXPECT_TRUE(heard().ranges.back().isOpen);
  }
  const HeardRange& range = heard().ranges.back();
  EXPECT_FALSE(range.isOpen);
  EXPECT_EQ(range.text, "fc1 (BasicLinear, forward) [32, 48] bf16");
  EXPECT_EQ(range.fields, (std::map<std::string, std::string>{{"step", "fc1"},
                                                              {"kernel", "BasicLinear"},
                                                              {"pass", "forward"},
                                                              {"writes", "[32, 48] bf16"},
                                                              {"bytes", "12288"},
                                                              {"flops", "77"}}));
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
