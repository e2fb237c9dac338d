// Kernel "cached_activation": an activation that keeps its input in E4M3. Forward: y, quantized x and its scale.
// Backward: the gradient at the dequantized x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/cached_activation_step.h"
#include "kernels/cuda/elementwise/elementwise_step.h"
#include "kernels/cuda/elementwise/program_runner.h"
#include "kernels/cuda/quantize/quantize_launch.h"
#include "kernels/cuda/quantize/step_amaxes.h"
#include "kernels/cuda/support/workspace.h"

namespace fuseline::cuda::kernels {

namespace {

using namespace cached_activation;

/// Codes and scale, where the step keeps them.
class InputCache {
 public:
  explicit InputCache(const CompileRequest& request) : m_input(findInput(request)), m_device(request.device) {
    if (m_input.codes) m_amax = StepAmaxes(request, 1);
  }

  void fill(Pointers pointers) const {
    if (!m_input.codes) return;
    float* const amax = m_amax.cleared(m_device.stream).data();
    const device::Element element = elementOf(m_input.x.spec.dtype);
    const std::byte* const x = m_input.x.at(pointers);
    const AmaxSearch search{.x = x, .element = element, .elements = m_input.x.spec.numElements(), .amax = amax};
    launchAmax({&search, 1}, m_device.numMultiprocessors, m_device.stream);
    const TensorQuantization cast{.x = x,
                                  .element = element,
                                  .rows = m_input.x.spec.rows(),
                                  .cols = m_input.x.spec.cols(),
                                  .rowwise = {.codes = reinterpret_cast<std::uint8_t*>(m_input.codes.at(pointers)),
                                              .scales = m_input.inverse.at(pointers)},
                                  .amax = amax};
    launchQuantize({&cast, 1}, m_device.stream);
  }

 private:
  InputOperands m_input;
  StepAmaxes m_amax;
  const DeviceContext& m_device;
};

class CachedForward final : public Kernel {
 public:
  CachedForward(std::unique_ptr<Kernel> activation, InputCache cache)
      : m_activation(std::move(activation)), m_cache(std::move(cache)) {}
  std::size_t workspaceBytes() const override { return m_activation->workspaceBytes(); }
  void run(Pointers pointers, std::byte* workspace) override {
    m_cache.fill(pointers);
    m_activation->run(pointers, workspace);
  }

 private:
  std::unique_ptr<Kernel> m_activation;
  InputCache m_cache;
};

/// The program reads x from the workspace.
class CachedBackward final : public Kernel {
 public:
  CachedBackward(ProgramRunner runner, const ElementwiseShape& shape, const CompileRequest& request)
      : m_runner(std::move(runner)),
        m_shape(shape),
        m_input(findInput(request)),
        m_dtype(dtypeOfInput(request)),
        m_stream(request.device.stream) {
    for (const OperandKey& key : m_runner.operands()) m_bindings.push_back(findOperand(request, key));
    m_memory.resize(m_bindings.size());
  }

  std::size_t workspaceBytes() const override { return inputBytes() + m_runner.workspaceBytes(m_shape); }

  void run(Pointers pointers, std::byte* workspace) override {
    restore(pointers, workspace);
    for (std::size_t i = 0; i < m_bindings.size(); ++i)
      m_memory[i] = m_runner.operands()[i] == kInput ? workspace : m_bindings[i].at(pointers);
    m_runner.run(m_shape, m_memory, workspace + inputBytes(), m_stream);
  }

 private:
  std::size_t inputBytes() const {
    return workspacePart(static_cast<std::size_t>(m_input.codes.spec.numElements() * sizeBytes(m_dtype)));
  }

  void restore(Pointers pointers, std::byte* x) const {
    launchDequantize({.codes = reinterpret_cast<const std::uint8_t*>(m_input.codes.at(pointers)),
                      .inverseScale = reinterpret_cast<const float*>(m_input.inverse.at(pointers)),
                      .out = x,
                      .element = elementOf(m_dtype),
                      .elements = m_input.codes.spec.numElements()},
                     m_stream);
  }

  ProgramRunner m_runner;
  ElementwiseShape m_shape;
  InputOperands m_input;
  DType m_dtype;
  Stream m_stream;
  std::vector<Binding> m_bindings;
  std::vector<std::byte*> m_memory;  // of the bindings, in one call
};

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  auto activation = makeElementwiseKernel(request, innerProgram(request));
  if (!activation) return activation.error();
  return std::unique_ptr<Kernel>(std::make_unique<CachedForward>(std::move(*activation), InputCache(request)));
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  if (const Result<InputOperands> input = requireKeptInput(request); !input) return input.error();
  const auto dtypeOf = [&](const OperandKey& key) {
    return key == kInput ? dtypeOfInput(request) : findOperand(request, key).spec.dtype;
  };
  const Result<DeviceProgram> program = compileProgram(innerProgram(request), dtypeOf);
  if (!program) return program.error();
  const TensorSpec& y = request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0);
  const ElementwiseShape shape = programShape(*program, {y.rows(), y.cols()}, request.device.numMultiprocessors);
  return std::unique_ptr<Kernel>(
      std::make_unique<CachedBackward>(ProgramRunner(*program, shape, dtypeOf, request.device), shape, request));
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

}  // namespace fuseline::cuda::kernels
