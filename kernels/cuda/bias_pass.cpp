// An elementwise program behind the product: c += bias.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/bias_pass.h"

#include "kernels/cuda/elementwise_launch.h"
#include "kernels/cuda/elementwise_program.h"

namespace fuseline::cuda {

namespace {

/// Operand 0: c. Operand 1: bias.
device::Program biasProgram(DType dtype) {
  device::Program program{};
  program.operands[0] = {.element = elementOf(dtype), .access = device::Access::Full};
  program.operands[1] = {.element = elementOf(dtype), .access = device::Access::Row};
  program.code[0] = {.opcode = device::Opcode::Load, .out = 0, .operand = 0};
  program.code[1] = {.opcode = device::Opcode::Load, .out = 1, .operand = 1};
  program.code[2] = {.opcode = device::Opcode::Add, .out = 0, .a = 0, .b = 1};
  program.stores[0] = {.value = 0, .operand = 0};
  program.numInstructions = 3;
  program.numOperands = 2;
  program.numStores = 1;
  return program;
}

class GemmThenBias final : public Gemm {
 public:
  GemmThenBias(std::unique_ptr<Gemm> gemm, const GemmProblem& problem, int numMultiprocessors, Stream stream)
      : m_gemm(std::move(gemm)),
        m_program(biasProgram(problem.cType)),
        m_shape(elementwiseShape(problem.m, problem.n, problem.n % kVectorWidth == 0, false, numMultiprocessors)),
        m_stream(stream) {}

  std::size_t workspaceBytes() const override { return m_gemm->workspaceBytes(); }

  void multiply(const GemmPointers& pointers, std::byte* workspace) override {
    GemmPointers plain = pointers;
    plain.bias = nullptr;
    m_gemm->multiply(plain, workspace);
    if (m_shape.grid.rows == 0 || m_shape.grid.cols == 0) return;
    m_program.operands[0].data = pointers.c;
    m_program.operands[1].data = const_cast<std::byte*>(pointers.bias);  // programs read and write by one type
    launchProgram(m_program, m_shape, nullptr, m_stream);
  }

 private:
  std::unique_ptr<Gemm> m_gemm;
  device::Program m_program;
  ElementwiseShape m_shape;
  Stream m_stream;
};

class GemmsWithBiasPass final : public GemmLibrary {
 public:
  GemmsWithBiasPass(std::unique_ptr<GemmLibrary> library, int numMultiprocessors, Stream stream)
      : m_library(std::move(library)), m_numMultiprocessors(numMultiprocessors), m_stream(stream) {}

  Result<std::unique_ptr<Gemm>> prepare(const GemmProblem& problem) override {
    Result<std::unique_ptr<Gemm>> whole = m_library->prepare(problem);
    if (whole || !problem.hasBias) return whole;
    GemmProblem plain = problem;
    plain.hasBias = false;
    Result<std::unique_ptr<Gemm>> product = m_library->prepare(plain);
    if (!product) return product;
    return std::unique_ptr<Gemm>(
        std::make_unique<GemmThenBias>(std::move(*product), problem, m_numMultiprocessors, m_stream));
  }

  std::size_t maxWorkspaceBytes() const override { return m_library->maxWorkspaceBytes(); }

 private:
  std::unique_ptr<GemmLibrary> m_library;
  int m_numMultiprocessors;
  Stream m_stream;
};

}  // namespace

std::unique_ptr<GemmLibrary> makeGemmsWithBiasPass(std::unique_ptr<GemmLibrary> library, int numMultiprocessors,
                                                   Stream stream) {
  return std::make_unique<GemmsWithBiasPass>(std::move(library), numMultiprocessors, stream);
}

}  // namespace fuseline::cuda
