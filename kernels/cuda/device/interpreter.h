// Evaluates elementwise programs instruction by instruction, for programs without generated code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/dropout.h"
#include "kernels/cuda/device/elementwise.h"
#include "kernels/cuda/device/functions.h"

#include <cstdint>

namespace fuseline::cuda::device {

inline __device__ float compute(Opcode opcode, float a, float b) {
  switch (opcode) {
    case Opcode::Add: return a + b;
    case Opcode::Sub: return a - b;
    case Opcode::Mul: return a * b;
    case Opcode::Div: return a / b;
    case Opcode::Max: return maximum(a, b);
    case Opcode::Min: return minimum(a, b);
    case Opcode::Less: return less(a, b);
    case Opcode::Neg: return -a;
    case Opcode::Exp: return expf(a);
    case Opcode::Log: return logf(a);
    case Opcode::Sqrt: return sqrtf(a);
    case Opcode::Rsqrt: return 1.0f / sqrtf(a);
    case Opcode::Tanh: return tanhf(a);
    case Opcode::Erf: return erff(a);
    case Opcode::Sigmoid: return sigmoid(a);
    case Opcode::Gelu: return gelu(a);
    case Opcode::GeluGrad: return geluGrad(a);
    case Opcode::ExactGelu: return exactGelu(a);
    case Opcode::ExactGeluGrad: return exactGeluGrad(a);
    case Opcode::Silu: return silu(a);
    case Opcode::SiluGrad: return siluGrad(a);
    case Opcode::Load:
    case Opcode::Constant:
    case Opcode::Dropout: break;
  }
  return 0.0f;
}

template <int kVector, bool kIsShifted = false>
class Interpreter {
 public:
  static constexpr int kMaxColumnSums = Program::kMaxSums;

  explicit __device__ Interpreter(const Program& program) : m_program(program) {}

  __device__ int numColumnSums() const { return m_program.numColumnSums; }
  __device__ int numRowSums() const { return m_program.numRowSums; }
  __device__ const float (&columnSum(int s) const)[kVector] { return m_values[m_program.columnSums[s].value]; }
  __device__ const float (&rowSum(int s) const)[kVector] { return m_values[m_program.rowSums[s].value]; }

  /// Every operand is loaded where it is used.
  struct Loads {};
  __device__ void request(const Grid&, const Position&, Loads&) const {}

  /// Stores come last: an operand may be overwritten in place.
  __device__ void evaluate(const Grid& grid, const Position& at, const Loads&) {
    for (int i = 0; i < m_program.numInstructions; ++i) execute(m_program.code[i], grid, at);
    for (int i = 0; i < m_program.numStores; ++i) {
      const Stored& stored = m_program.stores[i];
      storeOperand<kVector, kIsShifted>(m_program.operands[stored.operand], grid, at, m_values[stored.value]);
    }
  }

 private:
  __device__ void execute(const Instruction& instruction, const Grid& grid, const Position& at) {
    float(&out)[kVector] = m_values[instruction.out];
    switch (instruction.opcode) {
      case Opcode::Load:
        return loadOperand<kVector, kIsShifted>(m_program.operands[instruction.operand], grid, at, out);
      case Opcode::Constant: return fill<kVector>(instruction.constant, out);
      case Opcode::Dropout: {
        const auto first = static_cast<std::uint64_t>(indexOf(m_program.operands[instruction.operand], grid, at));
        return drop<kVector>(m_program.dropouts[instruction.dropout], instruction.constant, first, out);
      }
      default:
#pragma unroll 1  // one copy of the functions instead of one per element: registers are the scarce resource
        for (int v = 0; v < kVector; ++v)
          out[v] = compute(instruction.opcode, m_values[instruction.a][v], m_values[instruction.b][v]);
    }
  }

  const Program& m_program;
  float m_values[Program::kMaxRegisters][kVector];
};

}  // namespace fuseline::cuda::device
