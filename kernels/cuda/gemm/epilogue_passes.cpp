// Takes epilogues off a problem until the library solves it, and makes programs of them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/epilogue_passes.h"

#include "kernels/cuda/elementwise/program_pass.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cuda {

namespace {

/// The operands of the programs. Product: the library's result for c, or for the pre-activation.
enum class Slot : std::uint8_t { Product, Bias, GeluInput, C, A, BiasGrad };

OperandKey keyOf(Slot slot) { return {.slot = static_cast<int>(slot)}; }
Slot slotOf(const OperandKey& key) { return static_cast<Slot>(key.slot); }

DType dtypeOf(const GemmProblem& problem, Slot slot) {
  if (slot == Slot::A) return problem.factorType;
  if (slot == Slot::BiasGrad) return problem.biasGradType.value_or(DType::F32);
  return problem.cType;
}

struct Memory {
  GemmPointers pointers;
  std::byte* product = nullptr;

  std::byte* at(Slot slot) const {
    switch (slot) {
      case Slot::Product: return product;
      case Slot::Bias: return const_cast<std::byte*>(pointers.bias);  // programs read and write by one type
      case Slot::GeluInput: return const_cast<std::byte*>(pointers.geluInput);
      case Slot::C: return pointers.c;
      case Slot::A: return const_cast<std::byte*>(pointers.a);
      case Slot::BiasGrad: return pointers.biasGrad;
    }
    return nullptr;
  }
};

class ResultProgram {
 public:
  /// The remaining work for c after a GEMM that solves only `solved`, and for the pre-activation, which replaces the
  /// GEMM's result.
  static ElementwiseProgram make(const GemmProblem& problem, const GemmProblem& solved) {
    ResultProgram made;
    ValueIndex z = made.add({.opcode = Opcode::Load, .place = {.operand = keyOf(Slot::Product)}});
    if (problem.hasBias && !solved.hasBias) {
      z = made.addBias(z);
      if (problem.hasPreActivation) made.store(z, Slot::Product);
    }
    z = made.activate(z, problem.activation);
    made.store(problem.hasGeluGrad ? made.timesGeluGrad(z) : z, Slot::C);
    return std::move(made.m_program);
  }

 private:
  ValueIndex add(const Instruction& instruction) {
    m_program.code.push_back(instruction);
    return static_cast<ValueIndex>(m_program.code.size()) - 1;
  }

  void store(ValueIndex value, Slot slot) {
    m_program.stores.push_back({.value = value, .place = {.operand = keyOf(slot)}});
  }

  ValueIndex addBias(ValueIndex z) {
    const ValueIndex bias =
        add({.opcode = Opcode::Load, .place = {.operand = keyOf(Slot::Bias), .access = Access::Row}});
    return add({.opcode = Opcode::Add, .a = z, .b = bias});
  }

  ValueIndex activate(ValueIndex z, GemmActivation activation) {
    if (activation == GemmActivation::None) return z;
    if (activation == GemmActivation::Gelu) return add({.opcode = Opcode::Gelu, .a = z});
    const ValueIndex zero = add({.opcode = Opcode::Constant});
    return add({.opcode = Opcode::Max, .a = z, .b = zero});
  }

  ValueIndex timesGeluGrad(ValueIndex z) {
    const ValueIndex x = add({.opcode = Opcode::Load, .place = {.operand = keyOf(Slot::GeluInput)}});
    return add({.opcode = Opcode::Mul, .a = z, .b = add({.opcode = Opcode::GeluGrad, .a = x})});
  }

  ElementwiseProgram m_program;
};

/// The sums of a over k, which are the column sums of a matrix that is stored transposed.
ElementwiseProgram biasGradProgram() {
  return {.code = {{.opcode = Opcode::Load, .place = {.operand = keyOf(Slot::A)}}},
          .columnSums = {{.value = 0, .place = {.operand = keyOf(Slot::BiasGrad), .access = Access::Row}}}};
}

/// Why a GEMM does not do all of the requested work.
enum class Why : std::uint8_t { NoEpilogue, Faster };

/// The parts of the problem's epilogue that the GEMM leaves, as text.
std::vector<std::string> partsLeft(const GemmProblem& problem, const GemmProblem& solved) {
  std::vector<std::string> parts;
  if (problem.hasBias && !solved.hasBias) parts.emplace_back("bias");
  if (problem.activation != solved.activation)
    parts.emplace_back(problem.activation == GemmActivation::Gelu ? "GELU" : "ReLU");
  if (problem.hasGeluGrad && !solved.hasGeluGrad) parts.emplace_back("the gradient of GELU");
  if (problem.biasGradType && !solved.biasGradType) parts.emplace_back("the gradient of the bias");
  return parts;
}

class GemmWithPasses final : public Gemm {
 public:
  /// product: the GEMM that solves `solved`, which has less of the epilogue than the problem.
  GemmWithPasses(std::unique_ptr<Gemm> product, const GemmProblem& solved, const GemmProblem& problem, Why why)
      : m_product(std::move(product)), m_solved(solved), m_problem(problem), m_why(why) {}

  /// Adds the passes for the remaining work. Errors: those of ProgramPass::make.
  Result<void> addPasses(const DeviceContext& device) {
    const auto add = [&](const ElementwiseProgram& program, GridSize grid) -> Result<void> {
      const auto dtype = [&](const OperandKey& key) { return dtypeOf(m_problem, slotOf(key)); };
      constexpr std::uint32_t kPacketBytes = 16;
      const bool areAligned = m_problem.alignmentBytes % kPacketBytes == 0;
      Result<ProgramPass> pass = ProgramPass::make(program, grid, dtype, device, areAligned);
      if (!pass) return pass.error();
      m_passes.push_back(std::move(*pass));
      return {};
    };
    if (m_problem.biasGradType != m_solved.biasGradType)
      if (Result<void> added = add(biasGradProgram(), {m_problem.k, m_problem.m}); !added) return added;
    if (m_problem.hasBias == m_solved.hasBias && m_problem.activation == m_solved.activation &&
        m_problem.hasGeluGrad == m_solved.hasGeluGrad)
      return {};
    return add(ResultProgram::make(m_problem, m_solved), {m_problem.m, m_problem.n});
  }

  std::string way() const override {
    return fmt::format("{} by a separate kernel, {}", fmt::join(partsLeft(m_problem, m_solved), " and "),
                       m_why == Why::Faster ? "which was faster here than the epilogue of cuBLASLt"
                                            : "because cuBLASLt has no such epilogue");
  }

  std::size_t workspaceBytes() const override {
    std::size_t bytes = m_product->workspaceBytes();
    for (const ProgramPass& pass : m_passes) bytes = std::max(bytes, pass.workspaceBytes());
    return bytes;
  }

  void multiply(const GemmPointers& pointers, std::byte* workspace, Stream stream) override {
    const bool isKept = m_problem.hasPreActivation && !m_solved.hasPreActivation;
    const Memory memory{pointers, isKept ? pointers.preActivation : pointers.c};
    GemmPointers solved = pointers;
    solved.c = memory.product;
    if (!m_solved.hasBias) solved.bias = nullptr;
    if (!m_solved.hasPreActivation) solved.preActivation = nullptr;
    if (!m_solved.hasGeluGrad) solved.geluInput = nullptr;
    if (!m_solved.biasGradType) solved.biasGrad = nullptr;
    m_product->multiply(solved, workspace, stream);
    for (ProgramPass& pass : m_passes)
      pass.run([&](const OperandKey& key) { return memory.at(slotOf(key)); }, workspace, stream);
  }

 private:
  std::unique_ptr<Gemm> m_product;
  GemmProblem m_solved;
  GemmProblem m_problem;
  Why m_why;
  std::vector<ProgramPass> m_passes;
};

/// Sums over quantized values would have to sum the dequantized ones; and a is read row by row.
bool hasPassFor(const GemmProblem& problem) {
  return !problem.biasGradType || (!problem.aCodes && problem.a == Storage2d::Transposed);
}

/// A bias by itself is not: its pass reads and writes all of c, the epilogue reads n numbers.
bool isWorthTiming(const GemmProblem& problem) {
  const bool isMore = problem.activation != GemmActivation::None || problem.hasGeluGrad || problem.biasGradType;
  return problem.hasTimeToTune && isMore;
}

/// The problem with less and less of its epilogue, as far as there are passes for the rest.
std::vector<GemmProblem> reduced(const GemmProblem& problem) {
  std::vector<GemmProblem> less;
  if (!hasPassFor(problem)) return less;
  GemmProblem next = problem;
  next.activation = GemmActivation::None;
  next.hasPreActivation = false;
  next.hasGeluGrad = false;
  next.biasGradType = std::nullopt;
  if (next != problem) less.push_back(next);
  if (std::exchange(next.hasBias, false)) less.push_back(next);
  return less;
}

class GemmsWithPasses final : public GemmLibrary {
 public:
  GemmsWithPasses(std::unique_ptr<GemmLibrary> library, const DeviceContext& device)
      : m_library(std::move(library)), m_device(device) {}

  Result<std::unique_ptr<Gemm>> prepare(const GemmProblem& problem) override {
    Result<std::unique_ptr<Gemm>> whole = m_library->prepare(problem);
    if (problem.cFormat) return whole;  // callers quantize in a pass of their own
    const std::vector<GemmProblem> less = reduced(problem);
    if (less.empty() || (whole && !isWorthTiming(problem))) return whole;
    Result<std::unique_ptr<Gemm>> separate = prepareSeparately(problem, less, whole ? Why::Faster : Why::NoEpilogue);
    if (!whole) return separate;
    if (!separate) return whole;
    Gemm* const ways[] = {whole->get(), separate->get()};
    return m_library->fastest(problem, ways) == 0 ? std::move(whole) : std::move(separate);
  }

  Result<std::unique_ptr<GroupedGemm>> prepareGrouped(const GemmProblem& problem, GroupExtent extent,
                                                      std::size_t numGroups) override {
    return m_library->prepareGrouped(problem, extent, numGroups);
  }

  std::size_t maxWorkspaceBytes() const override { return m_library->maxWorkspaceBytes(); }
  std::size_t fastest(const TimedStep& step) override { return m_library->fastest(step); }

 private:
  /// By the first of the reduced problems that the library takes.
  Result<std::unique_ptr<Gemm>> prepareSeparately(const GemmProblem& problem, const std::vector<GemmProblem>& less,
                                                  Why why) {
    Error refused;
    for (const GemmProblem& solved : less) {
      Result<std::unique_ptr<Gemm>> product = m_library->prepare(solved);
      if (product) return withPasses(std::move(*product), solved, problem, why);
      refused = product.error();
    }
    return refused;
  }

  Result<std::unique_ptr<Gemm>> withPasses(std::unique_ptr<Gemm> product, const GemmProblem& solved,
                                           const GemmProblem& problem, Why why) {
    auto gemm = std::make_unique<GemmWithPasses>(std::move(product), solved, problem, why);
    if (Result<void> added = gemm->addPasses(m_device); !added) return added.error();
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
