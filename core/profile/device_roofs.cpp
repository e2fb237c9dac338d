// Names, and the peak that limits each kind of work.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/device_roofs.h"

#include "core/support/field_table.h"

#include <algorithm>

namespace fuseline {

namespace {

void checkRates(JsonFields& fields, const DeviceRoofs& roofs) {
  for (const auto& [key, rate] : {std::pair("copyGBps", roofs.copyGBps),
                                  {"fmaF32Gflops", roofs.fmaF32Gflops},
                                  {"bf16Gflops", roofs.bf16Gflops},
                                  {"fp8Gflops", roofs.fp8Gflops}})
    if (!(rate >= 0.0)) fields.refuse(key, fmt::format("expected a rate from 0 up, found {}.", rate));
}

}  // namespace

std::string_view arithmeticName(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::None: return "";
    case Arithmetic::F32: return "f32";
    case Arithmetic::Bf16: return "bf16";
    case Arithmetic::Fp8: return "fp8";
  }
  return "";
}

Arithmetic arithmeticNamed(std::string_view name) {
  for (const Arithmetic arithmetic : {Arithmetic::F32, Arithmetic::Bf16, Arithmetic::Fp8})
    if (arithmeticName(arithmetic) == name) return arithmetic;
  return Arithmetic::None;
}

ComputeRoof computeRoof(const DeviceRoofs& roofs, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::None) return {};
  if (arithmetic == Arithmetic::Fp8 && roofs.fp8Gflops > 0.0) return {Arithmetic::Fp8, roofs.fp8Gflops};
  if (arithmetic != Arithmetic::F32 && roofs.bf16Gflops > 0.0) return {Arithmetic::Bf16, roofs.bf16Gflops};
  return roofs.fmaF32Gflops > 0.0 ? ComputeRoof{Arithmetic::F32, roofs.fmaF32Gflops} : ComputeRoof{};
}

DeviceRoofs higher(const DeviceRoofs& a, const DeviceRoofs& b) {
  return {.copyGBps = std::max(a.copyGBps, b.copyGBps),
          .fmaF32Gflops = std::max(a.fmaF32Gflops, b.fmaF32Gflops),
          .bf16Gflops = std::max(a.bf16Gflops, b.bf16Gflops),
          .fp8Gflops = std::max(a.fp8Gflops, b.fp8Gflops)};
}

const FieldTable<DeviceRoofs>& fieldsOf(const DeviceRoofs*) {
  static const FieldTable<DeviceRoofs> table(
      {field("copyGBps", &DeviceRoofs::copyGBps, "Read and written."),
       field("fmaF32Gflops", &DeviceRoofs::fmaF32Gflops, "Multiply-adds."),
       field("bf16Gflops", &DeviceRoofs::bf16Gflops, "The fastest GEMM."),
       field("fp8Gflops", &DeviceRoofs::fp8Gflops, "The fastest GEMM of quantized values; 0: none was measured.")},
      checkRates);
  return table;
}

Json toJson(const DeviceRoofs& roofs) { return fieldsOf(&roofs).toJson(roofs); }

}  // namespace fuseline
