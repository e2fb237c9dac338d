// Takes epilogues off a problem until the library solves it, and makes programs of them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/epilogue_passes.h"

#include "kernels/cuda/program_runner.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// The operands of the programs, by slot.
enum Slot { kC, kBias, kA, kBiasGrad, kNumSlots };
using Memory = std::array<std::byte*, kNumSlots>;

OperandKey keyOf(Slot slot) { return {.slot = slot}; }

DType dtypeOf(const GemmProblem& problem, const OperandKey& key) {
  if (key.slot == kA) return problem.factorType;
  if (key.slot == kBiasGrad) return problem.biasGradType.value_or(DType::F32);
  return problem.cType;
}

/// An elementwise program over a matrix.
class Pass {
 public:
  /// Errors: the program exceeds a limit of device::Program.
  static Result<Pass> make(const ElementwiseProgram& program, GridSize grid, const GemmProblem& problem,
                           const DeviceContext& device) {
    const auto dtype = [&](const OperandKey& key) { return dtypeOf(problem, key); };
    const Result<DeviceProgram> compiled = compileProgram(program, dtype);
    if (!compiled) return compiled.error();
    const ElementwiseShape shape = programShape(*compiled, grid, device.numMultiprocessors);
    return Pass(ProgramRunner(*compiled, shape, dtype, device), shape);
  }

  std::size_t workspaceBytes() const { return m_runner.workspaceBytes(m_shape); }

  void run(const Memory& memory, std::byte* workspace) {
    std::ranges::transform(m_runner.operands(), m_operands.begin(),
                           [&](const OperandKey& key) { return memory[static_cast<std::size_t>(key.slot)]; });
    m_runner.run(m_shape, m_operands, workspace);
  }

 private:
  Pass(ProgramRunner runner, const ElementwiseShape& shape)
      : m_runner(std::move(runner)), m_shape(shape), m_operands(m_runner.operands().size()) {}

  ProgramRunner m_runner;
  ElementwiseShape m_shape;
  std::vector<std::byte*> m_operands;  // in one call
};

/// c += bias
ElementwiseProgram biasProgram() {
  const Place c{.operand = keyOf(kC)};
  return {.code = {{.opcode = Opcode::Load, .place = c},
                   {.opcode = Opcode::Load, .place = {.operand = keyOf(kBias), .access = Access::Row}},
                   {.opcode = Opcode::Add, .a = 0, .b = 1}},
          .stores = {{.value = 2, .place = c}}};
}

/// The sums of a over k, which are those of the columns of a matrix that stands transposed.
ElementwiseProgram biasGradProgram() {
  return {.code = {{.opcode = Opcode::Load, .place = {.operand = keyOf(kA)}}},
          .columnSums = {{.value = 0, .place = {.operand = keyOf(kBiasGrad), .access = Access::Row}}}};
}

class GemmWithPasses final : public Gemm {
 public:
  GemmWithPasses(std::unique_ptr<Gemm> product, const GemmProblem& solved)
      : m_product(std::move(product)), m_solved(solved) {}

  /// What the product of a problem leaves to do. Errors: those of Pass::make.
  Result<void> addPasses(const GemmProblem& problem, const DeviceContext& device) {
    const auto add = [&](const ElementwiseProgram& program, GridSize grid) -> Result<void> {
      Result<Pass> pass = Pass::make(program, grid, problem, device);
      if (!pass) return pass.error();
      m_passes.push_back(std::move(*pass));
      return {};
    };
    if (problem.hasBias && !m_solved.hasBias)
      if (Result<void> added = add(biasProgram(), {.rows = problem.m, .cols = problem.n}); !added) return added;
    if (problem.biasGradType && !m_solved.biasGradType) return add(biasGradProgram(), {problem.k, problem.m});
    return {};
  }

  std::size_t workspaceBytes() const override {
    std::size_t bytes = m_product->workspaceBytes();
    for (const Pass& pass : m_passes) bytes = std::max(bytes, pass.workspaceBytes());
    return bytes;
  }

  void multiply(const GemmPointers& pointers, std::byte* workspace) override {
    GemmPointers solved = pointers;
    if (!m_solved.hasBias) solved.bias = nullptr;
    if (!m_solved.biasGradType) solved.biasGrad = nullptr;
    m_product->multiply(solved, workspace);
    for (Pass& pass : m_passes) pass.run(memoryOf(pointers), workspace);
  }

 private:
  static Memory memoryOf(const GemmPointers& pointers) {
    const auto readOnly = [](const std::byte* data) { return const_cast<std::byte*>(data); };  // programs have one type
    Memory memory;
    memory[kC] = pointers.c;
    memory[kBias] = readOnly(pointers.bias);
    memory[kA] = readOnly(pointers.a);
    memory[kBiasGrad] = pointers.biasGrad;
    return memory;
  }

  std::unique_ptr<Gemm> m_product;
  GemmProblem m_solved;
  std::vector<Pass> m_passes;
};

/// Sums of codes would be those of the numbers that they stand for; and a is read row by row.
bool hasPassFor(const GemmProblem& problem) {
  return !problem.biasGradType || (!problem.aCodes && problem.a == Storage2d::Transposed);
}

GemmProblem withoutEpilogue(GemmProblem problem) {
  problem.hasBias = false;
  problem.biasGradType = std::nullopt;
  return problem;
}

class GemmsWithPasses final : public GemmLibrary {
 public:
  GemmsWithPasses(std::unique_ptr<GemmLibrary> library, const DeviceContext& device)
      : m_library(std::move(library)), m_device(device) {}

  Result<std::unique_ptr<Gemm>> prepare(const GemmProblem& problem) override {
    Result<std::unique_ptr<Gemm>> whole = m_library->prepare(problem);
    const GemmProblem plain = withoutEpilogue(problem);
    if (whole || plain == problem || !hasPassFor(problem)) return whole;
    return prepareSeparately(problem, plain);
  }

  std::size_t maxWorkspaceBytes() const override { return m_library->maxWorkspaceBytes(); }

 private:
  Result<std::unique_ptr<Gemm>> prepareSeparately(const GemmProblem& problem, const GemmProblem& plain) {
    Result<std::unique_ptr<Gemm>> product = m_library->prepare(plain);
    if (!product) return product;
    auto gemm = std::make_unique<GemmWithPasses>(std::move(*product), plain);
    if (Result<void> added = gemm->addPasses(problem, m_device); !added) return added.error();
    return std::unique_ptr<Gemm>(std::move(gemm));
  }

  std::unique_ptr<GemmLibrary> m_library;
  DeviceContext m_device;
};

}  // namespace

std::unique_ptr<GemmLibrary> makeGemmsWithPasses(std::unique_ptr<GemmLibrary> library, const DeviceContext& device) {
  return std::make_unique<GemmsWithPasses>(std::move(library), device);
}

}  // namespace fuseline::cuda
