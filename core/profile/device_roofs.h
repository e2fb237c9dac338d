// DeviceRoofs: what a device can do at best, and by which of its arithmetics a step computes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <string_view>

namespace fuseline {

template <class T>
class FieldTable;

/// Of what kind the operations of a step are. None: it stands under no roof of its device, as it waits for a link to
/// the host or to another device, or nobody noted it.
enum class Arithmetic { None, F32, Bf16, Fp8 };

/// "f32", "bf16", "fp8"; empty for None.
std::string_view arithmeticName(Arithmetic arithmetic);
/// None for a name that is not known, such as one of a newer program.
Arithmetic arithmeticNamed(std::string_view name);

/// What a device can do at best, measured now: what times are compared with. 0: it was not measured, or there is no
/// such arithmetic.
struct DeviceRoofs {
  double copyGBps = 0.0;      // bytes read and written by a large copy
  double fmaF32Gflops = 0.0;  // float32 multiply-adds
  double bf16Gflops = 0.0;    // products of bf16
  double fp8Gflops = 0.0;     // products of FP8 codes with one scale a tensor

  bool operator==(const DeviceRoofs&) const = default;
};

/// An arithmetic with its peak. None, 0: nothing was measured that would do.
struct ComputeRoof {
  Arithmetic arithmetic = Arithmetic::None;
  double gflops = 0.0;
};

/// A device without an arithmetic of its own for products computes them in the next wider one.
ComputeRoof computeRoof(const DeviceRoofs& roofs, Arithmetic arithmetic);

/// The higher of each: on a shared machine one of two measurements may be disturbed.
DeviceRoofs higher(const DeviceRoofs& a, const DeviceRoofs& b);

const FieldTable<DeviceRoofs>& fieldsOf(const DeviceRoofs*);
Json toJson(const DeviceRoofs& roofs);

}  // namespace fuseline
