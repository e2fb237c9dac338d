// Loops that do nothing but reach a limit of the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace fuseline::cpu {

/// float32 fused multiply-adds in registers. Returns the number of floating-point operations done by the calling
/// thread; `sink` keeps the compiler from dropping them.
double multiplyAddInRegisters(std::int64_t iterations, float& sink);

/// bf16 dot products in registers, two multiplications and two additions per lane; 0 if the CPU has no such
/// instruction.
double bf16DotInRegisters(std::int64_t iterations, float& sink);

/// GEMMs of bf16 tiles (AMX); 0 if the CPU has no such instruction or the system does not provide its registers.
double bf16TilesInRegisters(std::int64_t iterations, float& sink);

}  // namespace fuseline::cpu
