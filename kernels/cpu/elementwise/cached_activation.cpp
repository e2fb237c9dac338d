// Kernel "cached_activation": an activation that keeps its input in E4M3. Forward: y, quantized x and its scale.
// Backward: the gradient at the dequantized x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/cached_activation_step.h"
#include "kernels/cpu/elementwise/strip_step.h"
#include "kernels/cpu/quantize/quantized_codecs.h"
#include "kernels/cpu/quantize/quantized_copy.h"
#include "kernels/cpu/workspace.h"

#include <algorithm>
#include <vector>

namespace fuseline::cpu::kernels {

namespace {

using namespace cached_activation;

/// Elements that one thread works on at a time.
constexpr std::int64_t kChunk = 4096;

/// Calls work(first, count) for chunks of the elements, on all threads.
template <class Work>
void forChunks(std::int64_t elements, Work work) {
  const std::int64_t numChunks = (elements + kChunk - 1) / kChunk;
#pragma omp parallel for schedule(static) if (numChunks > 1)
  for (std::int64_t chunk = 0; chunk < numChunks; ++chunk) {
    const std::int64_t first = chunk * kChunk;
    work(first, std::min(kChunk, elements - first));
  }
}

/// Codes and scale, where the step keeps them.
class InputCache {
 public:
  explicit InputCache(InputOperands input) : m_input(std::move(input)) {}

  void fill(Pointers operands) const {
    if (!m_input.codes) return;
    const std::byte* const x = m_input.x.at(operands);
    const float scale = currentScale(amaxOf(x, m_input.x.spec));
    *reinterpret_cast<float*>(m_input.inverse.at(operands)) = 1.0F / scale;
    auto* const codes = reinterpret_cast<std::uint8_t*>(m_input.codes.at(operands));
    const QuantizeFunction quantize = codecsOf(ElementFormat::E4M3, m_input.x.spec.dtype).quantize;
    forChunks(m_input.x.spec.numElements(), [&](std::int64_t first, std::int64_t count) {
      quantize(codes + first, x + first * sizeBytes(m_input.x.spec.dtype), scale, static_cast<std::size_t>(count));
    });
  }

 private:
  InputOperands m_input;
};

class CachedForward final : public Kernel {
 public:
  CachedForward(std::unique_ptr<Kernel> activation, InputCache cache)
      : m_activation(std::move(activation)), m_cache(std::move(cache)) {}
  std::size_t workspaceBytes() const override { return m_activation->workspaceBytes(); }
  void run(Pointers operands, std::byte* workspace) override {
    m_activation->run(operands, workspace);
    m_cache.fill(operands);
  }

 private:
  std::unique_ptr<Kernel> m_activation;
  InputCache m_cache;
};

/// The program reads x from scratch, whose pointer follows the step's own operands.
class CachedBackward final : public Kernel {
 public:
  CachedBackward(StripEngine engine, std::int64_t rows, InputOperands input, DType dtype)
      : m_engine(std::move(engine)), m_rows(rows), m_input(std::move(input)), m_dtype(dtype) {}

  std::size_t workspaceBytes() const override { return scratchBytes() + m_engine.workspaceBytes(m_rows); }

  void run(Pointers operands, std::byte* workspace) override {
    restore(operands, workspace);
    m_pointers.assign(operands.begin(), operands.end());
    m_pointers.push_back(workspace);
    m_engine.run(m_pointers, m_rows, workspace + scratchBytes());
  }

 private:
  std::size_t scratchBytes() const {
    return workspacePart(static_cast<std::size_t>(m_input.codes.spec.numElements() * sizeBytes(m_dtype)));
  }

  void restore(Pointers operands, std::byte* x) const {
    const auto* const codes = reinterpret_cast<const std::uint8_t*>(m_input.codes.at(operands));
    const float inverse = *reinterpret_cast<const float*>(m_input.inverse.at(operands));
    const DequantizeFunction dequantize = codecsOf(ElementFormat::E4M3, m_dtype).dequantize;
    forChunks(m_input.codes.spec.numElements(), [&](std::int64_t first, std::int64_t count) {
      dequantize(x + first * sizeBytes(m_dtype), codes + first, inverse, static_cast<std::size_t>(count));
    });
  }

  StripEngine m_engine;
  std::int64_t m_rows;
  InputOperands m_input;
  DType m_dtype;
  std::vector<std::byte*> m_pointers;
};

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  auto activation = makeStripKernel(request, innerProgram(request));
  if (!activation) return activation.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<CachedForward>(std::move(*activation), InputCache(findInput(request))));
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  Result<InputOperands> input = requireKeptInput(request);
  if (!input) return input.error();
  const TensorSpec& y = request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0);
  const DType dtype = dtypeOfInput(request);
  const int scratch = static_cast<int>(request.step.operands.size());
  StripEngine engine(innerProgram(request), y.cols(), request.settings.threads, [&](const OperandKey& key) {
    if (key == kInput) return StripOperand{dtype, scratch};
    const Binding binding = findOperand(request, key);
    return StripOperand{binding.spec.dtype, binding.index};
  });
  return std::unique_ptr<Kernel>(
      std::make_unique<CachedBackward>(std::move(engine), y.rows(), std::move(*input), dtype));
}

}  // namespace

KernelDef cached_activation();

KernelDef cached_activation() {
  return {
      .name = "cached_activation",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = byPhase(compileForward, compileBackward),
  };
}

}  // namespace fuseline::cpu::kernels
