// Elementwise programs as they travel to the device: plain data, which the host fills in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/quantize_data.h"

#include <cstdint>

namespace fuseline::cuda::device {

/// Element types that ops compute with; numbered like the first dtypes.
enum class Element : std::uint8_t { F32, F16, BF16 };

constexpr int kBlockThreads = 256;
constexpr int kWarpLanes = 32;
/// Numbered as core's Access.
enum class Access : std::uint8_t { Full, Row, Column, Scalar };

/// A place of a program with its memory.
struct Operand {
  void* data = nullptr;
  std::int64_t interleave = 0;
  Element element = Element::F32;
  Access access = Access::Full;
  std::uint8_t lane = 0;
  std::uint8_t lanes = 1;
};

struct Grid {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t rowsPerBlock = 1;
};

/// The fields of a DropoutMask.
struct Dropout {
  std::uint32_t key[2] = {};
  std::uint32_t stream[2] = {};
  std::uint32_t threshold = 0;
  std::uint64_t first = 0;  // index of the tensor's first element in the mask: a rank has a slice
};

/// Numbered as core's Opcode.
enum class Opcode : std::uint8_t {
  Load,
  Constant,
  Dropout,
  Add,
  Sub,
  Mul,
  Div,
  Max,
  Min,
  Less,
  Neg,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Tanh,
  Erf,
  Sigmoid,
  Gelu,
  GeluGrad,
  ExactGelu,
  ExactGeluGrad,
  Silu,
  SiluGrad,
};

/// Values live in registers, which are reassigned after their last use.
struct Instruction {
  Opcode opcode = Opcode::Constant;
  std::uint8_t out = 0;
  std::uint8_t a = 0;
  std::uint8_t b = 0;
  std::uint8_t operand = 0;  // of Load; of Dropout the operand whose lanes number the elements
  std::uint8_t dropout = 0;
  float constant = 0.0f;
};

/// A register that is stored or summed at the end of each element.
struct Stored {
  std::uint8_t value = 0;
  std::uint8_t operand = 0;
};

/// Passed as an argument of the kernel. Limits are far above the needs of ops; code that exceeds them is refused.
struct Program {
  static constexpr int kMaxInstructions = 512;
  static constexpr int kMaxRegisters = 48;
  static constexpr int kMaxOperands = 48;
  static constexpr int kMaxDropouts = 8;
  static constexpr int kMaxStores = 24;
  static constexpr int kMaxSums = 8;

  Instruction code[kMaxInstructions];
  Operand operands[kMaxOperands];
  Dropout dropouts[kMaxDropouts];
  Stored stores[kMaxStores];
  Stored columnSums[kMaxSums];
  Stored rowSums[kMaxSums];
  int numInstructions = 0;
  int numOperands = 0;
  int numDropouts = 0;
  int numStores = 0;
  int numColumnSums = 0;
  int numRowSums = 0;
};

/// Replaces a Program for generated code: the rest of the program is in the code.
struct Arguments {
  void* data[Program::kMaxOperands];
  Dropout dropouts[Program::kMaxDropouts];
  QuantizedOutputs quantizedOutputs;
};

}  // namespace fuseline::cuda::device
