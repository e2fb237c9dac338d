// DevicePeaks: the peak bandwidth and FLOP/s of a device, and the arithmetic of a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <string_view>

namespace fuseline {

template <class T>
class FieldTable;

/// Kind of a step's operations. None: no peak of its device limits the step, because it waits for a link to the host or
/// to another device, or its kind was not recorded.
enum class Arithmetic { None, F32, Bf16, Fp8 };

/// "f32", "bf16", "fp8"; empty for None.
std::string_view arithmeticName(Arithmetic arithmetic);
/// None for a name that is not known, such as one of a newer program.
Arithmetic arithmeticNamed(std::string_view name);

/// Peak rates of a device, measured now, for comparison with times. 0: not measured, or the device has no such
/// arithmetic.
struct DevicePeaks {
  double copyGBps = 0.0;      // bytes read and written by a large copy
  double fmaF32Gflops = 0.0;  // float32 multiply-adds
  double bf16Gflops = 0.0;    // bf16 GEMMs
  double fp8Gflops = 0.0;     // FP8 GEMMs with one scale per tensor

  bool operator==(const DevicePeaks&) const = default;
};

/// An arithmetic with its peak. None, 0: no suitable peak was measured.
struct ComputePeak {
  Arithmetic arithmetic = Arithmetic::None;
  double gflops = 0.0;
};

/// A device without this arithmetic for GEMMs computes them in the next wider one.
ComputePeak computePeak(const DevicePeaks& peaks, Arithmetic arithmetic);

/// The higher of each: on a shared machine one of two measurements may be disturbed.
DevicePeaks higher(const DevicePeaks& a, const DevicePeaks& b);

const FieldTable<DevicePeaks>& fieldsOf(const DevicePeaks*);
Json toJson(const DevicePeaks& peaks);

}  // namespace fuseline
