// Kernel "cached_activation": an activation that keeps its input in E4M3. Forward: y, quantized x and its scale.
// Backward: the gradient at the dequantized x.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/cached_activation_step.h"
#include "kernels/cuda/elementwise/elementwise_step.h"
#include "kernels/cuda/elementwise/program_runner.h"
#include "kernels/cuda/quantize/quantize_launch.h"
#include "kernels/cuda/quantize/step_amaxes.h"
#include "kernels/cuda/support/workspace.h"

#include <algorithm>
#include <vector>

namespace fuseline::cuda::kernels {

namespace {

using namespace cached_activation;

/// Quantized values and scale of x.
class InputCache {
 public:
  explicit InputCache(const CompileRequest& request)
      : m_input(findInput(request)), m_amax(request, 1), m_device(request.device) {}

  float* clearedAmax() const { return m_amax.cleared(m_device.stream).data(); }

  void findAmax(Pointers pointers, float* amax) const {
    const AmaxSearch search{.x = m_input.x.at(pointers),
                            .element = elementOf(m_input.x.spec.dtype),
                            .elements = m_input.x.spec.numElements(),
                            .amax = amax};
    launchAmax({&search, 1}, m_device.numMultiprocessors, m_device.stream);
  }

  void quantize(Pointers pointers, const float* amax) const {
    const TensorQuantization cast{.x = m_input.x.at(pointers),
                                  .element = elementOf(m_input.x.spec.dtype),
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

/// An interpreted activation after the quantization of its input.
class CachedForward final : public Kernel {
 public:
  CachedForward(std::unique_ptr<Kernel> activation, InputCache cache)
      : m_activation(std::move(activation)), m_cache(std::move(cache)) {}
  std::size_t workspaceBytes() const override { return m_activation->workspaceBytes(); }
  void run(Pointers pointers, std::byte* workspace) override {
    float* const amax = m_cache.clearedAmax();
    m_cache.findAmax(pointers, amax);
    m_cache.quantize(pointers, amax);
    m_activation->run(pointers, workspace);
  }

 private:
  std::unique_ptr<Kernel> m_activation;
  InputCache m_cache;
};

/// A compiled activation that finds the amax of its input.
class MeasuringForward final : public Kernel {
 public:
  MeasuringForward(ProgramRunner runner, const ElementwiseShape& shape, const CompileRequest& request)
      : m_runner(std::move(runner)), m_shape(shape), m_cache(request), m_stream(request.device.stream) {
    for (const OperandKey& key : m_runner.operands()) m_bindings.push_back(findOperand(request, key));
    m_memory.resize(m_bindings.size());
  }

  std::size_t workspaceBytes() const override { return m_runner.workspaceBytes(m_shape); }

  /// An activation in place overwrites x, which is then quantized before.
  void run(Pointers pointers, std::byte* workspace) override {
    float* const amax = m_cache.clearedAmax();
    std::ranges::transform(m_bindings, m_memory.begin(), [&](const Binding& binding) { return binding.at(pointers); });
    const bool isInPlace =
        std::ranges::count(m_memory, findMemory(kInput)) > std::ranges::count(m_runner.operands(), kInput);
    if (isInPlace) {
      m_cache.findAmax(pointers, amax);
      m_cache.quantize(pointers, amax);
    }
    device::QuantizedOutputs found{.numPairs = 1};
    found.pairs[0].amax = amax;
    m_runner.setQuantizedOutputs(found);
    m_runner.run(m_shape, m_memory, workspace, m_stream);
    if (!isInPlace) m_cache.quantize(pointers, amax);
  }

 private:
  std::byte* findMemory(const OperandKey& key) const {
    const auto found = std::ranges::find(m_runner.operands(), key);
    return m_memory[static_cast<std::size_t>(found - m_runner.operands().begin())];
  }

  ProgramRunner m_runner;
  ElementwiseShape m_shape;
  InputCache m_cache;
  Stream m_stream;
  std::vector<Binding> m_bindings;
  std::vector<std::byte*> m_memory;  // of the bindings, in one call
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

ElementwiseShape shapeOf(const CompileRequest& request, const DeviceProgram& program,
                         const ShapeOptions& options = {}) {
  const TensorSpec& y = request.graph.spec(request.step.nodes.front(), OperandKind::Output, 0);
  return programShape(program, {y.rows(), y.cols()}, request.device.numMultiprocessors, options);
}

/// Nothing where programs are interpreted.
Result<std::unique_ptr<Kernel>> compileMeasuring(const CompileRequest& request) {
  const auto dtypeOf = [&](const OperandKey& key) { return findOperand(request, key).spec.dtype; };
  const Result<DeviceProgram> program = compileProgram(innerProgram(request), dtypeOf);
  if (!program) return program.error();
  HandedResult measured;
  for (int i = 0; i < program->program.numOperands; ++i)
    if (program->places[static_cast<std::size_t>(i)].operand == kInput) measured.loads.push_back(i);
  const auto shape = [&](int blocksAtOnce) {
    return shapeOf(request, *program, {.findsAmax = true, .blocksAtOnce = blocksAtOnce});
  };
  ProgramRunner runner(*program, shape(DeviceFill::kBlocksWithSums), dtypeOf, request.device, &measured);
  if (!runner.isCompiled()) return std::unique_ptr<Kernel>();
  const int blocksAtOnce = runner.blocksAtOnce();
  return std::unique_ptr<Kernel>(std::make_unique<MeasuringForward>(std::move(runner), shape(blocksAtOnce), request));
}

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const bool isKept(findInput(request).codes);
  if (isKept)
    if (Result<std::unique_ptr<Kernel>> measuring = compileMeasuring(request); !measuring || *measuring)
      return measuring;
  Result<std::unique_ptr<Kernel>> activation = makeElementwiseKernel(request, innerProgram(request));
  if (!activation || !isKept) return activation;
  return std::unique_ptr<Kernel>(std::make_unique<CachedForward>(std::move(*activation), InputCache(request)));
}

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  if (const Result<InputOperands> input = requireKeptInput(request); !input) return input.error();
  const auto dtypeOf = [&](const OperandKey& key) {
    return key == kInput ? dtypeOfInput(request) : findOperand(request, key).spec.dtype;
  };
  const Result<DeviceProgram> program = compileProgram(innerProgram(request), dtypeOf);
  if (!program) return program.error();
  const ElementwiseShape shape = shapeOf(request, *program);
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
