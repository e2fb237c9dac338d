// The registers of AMX, which hold tiles of numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace fuseline::cpu {

/// All eight registers as tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1;
  std::uint8_t startRow = 0;
  std::array<std::uint8_t, 14> reserved = {};
  std::array<std::uint16_t, 16> rowBytes = {64, 64, 64, 64, 64, 64, 64, 64};
  std::array<std::uint8_t, 16> rows = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// Has this CPU the instructions for bf16, may the process use them (ONEDNN_MAX_CPU_ISA), and does the
/// operating system permit AMX tile registers?
bool mayUseTileRegisters();

}  // namespace fuseline::cpu
