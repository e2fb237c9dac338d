// Names, and the peak that limits each kind of work.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/device_peaks.h"

#include "core/support/field_bounds.h"

#include <algorithm>

namespace fuseline {

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

ComputePeak computePeak(const DevicePeaks& peaks, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::None) return {};
  if (arithmetic == Arithmetic::Fp8 && peaks.fp8Gflops > 0.0) return {Arithmetic::Fp8, peaks.fp8Gflops};
  if (arithmetic != Arithmetic::F32 && peaks.bf16Gflops > 0.0) return {Arithmetic::Bf16, peaks.bf16Gflops};
  return peaks.fmaF32Gflops > 0.0 ? ComputePeak{Arithmetic::F32, peaks.fmaF32Gflops} : ComputePeak{};
}

DevicePeaks higher(const DevicePeaks& a, const DevicePeaks& b) {
  return {.copyGBps = std::max(a.copyGBps, b.copyGBps),
          .fmaF32Gflops = std::max(a.fmaF32Gflops, b.fmaF32Gflops),
          .bf16Gflops = std::max(a.bf16Gflops, b.bf16Gflops),
          .fp8Gflops = std::max(a.fp8Gflops, b.fp8Gflops)};
}

const FieldTable<DevicePeaks>& fieldsOf(const DevicePeaks*) {
  static const FieldTable<DevicePeaks> table(
      {amount(field("copyGBps", &DevicePeaks::copyGBps, "Bandwidth of a large copy, bytes read and written.")),
       amount(field("fmaF32Gflops", &DevicePeaks::fmaF32Gflops, "Multiply-adds.")),
       amount(field("bf16Gflops", &DevicePeaks::bf16Gflops, "FLOP/s of the fastest GEMM.")),
       amount(field("fp8Gflops", &DevicePeaks::fp8Gflops,
                    "The fastest GEMM with quantized operands; 0: none was measured."))});
  return table;
}

Json toJson(const DevicePeaks& peaks) { return fieldsOf(&peaks).toJson(peaks); }

}  // namespace fuseline
