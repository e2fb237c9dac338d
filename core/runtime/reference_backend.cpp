// The reference device: every step through the ops' own double-precision mathematics. Slow and exact.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/column_views.h"
#include "core/plan/optimizer/optimizer_step.h"
#include "core/quant/copy_memory.h"
#include "core/runtime/backend.h"
#include "core/runtime/optimizer_reference.h"
#include "core/runtime/quantize_steps.h"
#include "core/runtime/step_reference.h"
#include "core/tensor/tensor.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

namespace fuseline {

namespace {

class HostMemory final : public DeviceMemory {
 public:
  explicit HostMemory(std::size_t sizeBytes) : m_bytes(sizeBytes) {}
  std::byte* data() override { return m_bytes.data(); }
  std::size_t sizeBytes() const override { return m_bytes.size(); }

 private:
  std::vector<std::byte> m_bytes;  // value-initialized: every page has been touched
};

ReferenceTensor decoded(const TensorSpec& spec, const std::byte* data) {
  if (spec.quantized) return {.shape = spec.shape, .values = dequantizedValues(spec, data)};
  ReferenceTensor tensor{.shape = spec.shape,
                         .values = std::vector<double>(static_cast<std::size_t>(spec.numElements()))};
  decode(data, spec.dtype, tensor.values);
  return tensor;
}

class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(const Graph& graph, const Plan& plan, const Step& step)
      : m_graph(graph), m_plan(plan), m_step(step) {}

  void run(std::span<std::byte* const> operands, std::byte*) override {
    std::vector<std::vector<double>> results(operands.size());
    const std::vector<std::pair<const QuantizeWork*, Tensor>> quantized = handedOver(operands);
    for (const Reader reader : {Reader::Rows, Reader::Columns, Reader::Plain})
      if (isAsked(reader)) compute(operands, reader, results);
    // Only now: a result may share memory with an operand.
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (isResult(i) && operands[i]) store(results[i], i, operands[i]);
    for (const auto& [work, x] : quantized) fusedOperandReference(m_graph, m_plan, m_step, *work, x, operands);
  }

 private:
  /// If GEMMs read different quantized tensors of one gradient, dgrad, which reads rows, and wgrad run separately;
  /// other ops of the step read the plain gradient.
  enum class Reader { Rows, Columns, Plain };

  Reader readerOf(const StepOperand& result) const {
    const bool isParameter = result.key.kind == OperandKind::GradParameter;
    if (hasPlainGradient() && !isOfGemm(result.key)) return Reader::Plain;
    return isParameter ? Reader::Columns : Reader::Rows;
  }

  bool isOfGemm(const OperandKey& result) const {
    const bool isParameter = result.kind == OperandKind::GradParameter;
    const OperandKind operand = isParameter ? OperandKind::Parameter : OperandKind::Input;
    const FusedOperation entry{.nodes = {m_step.nodes[static_cast<std::size_t>(result.member)]}};
    return gemmOperand(m_graph, entry, {0, operand, result.slot}).has_value();
  }

  /// A gradient in addition to its quantized tensors, which GEMMs read.
  bool hasPlainGradient() const {
    return std::ranges::any_of(m_step.operands, [&](const StepOperand& operand) {
      return operand.key.kind == OperandKind::GradOutput && !operand.direction && numOperands(operand.key) > 1;
    });
  }

  std::ptrdiff_t numOperands(const OperandKey& key) const {
    return std::ranges::count(m_step.operands, key, &StepOperand::key);
  }

  const TensorSpec& spec(std::size_t operand) const { return m_plan.spec(m_step.operands[operand]); }
  const PlanTensor& tensorOf(std::size_t operand) const {
    return m_plan.tensors[static_cast<std::size_t>(m_step.operands[operand].tensor)];
  }

  ReferenceTensor load(std::size_t operand, const std::byte* data) const {
    const PlanTensor& tensor = tensorOf(operand);
    if (!tensor.columns) return decoded(tensor.spec, data);
    std::vector<std::byte> own(static_cast<std::size_t>(tensor.spec.bytes()));
    gatherColumns(tensor, data, own);
    return decoded(tensor.spec, own.data());
  }

  void store(const std::vector<double>& values, std::size_t operand, std::byte* data) const {
    const PlanTensor& tensor = tensorOf(operand);
    if (!tensor.columns) return encode(values, tensor.spec.dtype, data);
    std::vector<std::byte> own(static_cast<std::size_t>(tensor.spec.bytes()));
    encode(values, tensor.spec.dtype, own.data());
    scatterColumns(tensor, own, data);
  }
  /// A result of the step's ops, not a quantized form of one.
  bool isResult(std::size_t operand) const {
    const StepOperand& result = m_step.operands[operand];
    return result.access != OperandAccess::Read && !isOfCopies(result);
  }
  bool isOfCopies(const StepOperand& operand) const {
    return !m_step.copies.empty() && operand.key.member >= static_cast<int>(m_step.nodes.size());
  }

  /// The tensors that the step computes and quantizes at once.
  std::vector<std::pair<const QuantizeWork*, Tensor>> handedOver(std::span<std::byte* const> operands) const {
    std::vector<std::pair<const QuantizeWork*, Tensor>> tensors;
    if (m_step.copies.empty()) return tensors;
    StepReference reference(m_graph, m_step, readOperands(operands, Reader::Rows));
    for (const QuantizeWork& work : m_step.copies) {
      const TensorSpec quantized = work.quantizedSpec();
      Tensor& x = tensors.emplace_back(&work, Tensor::zeros(quantized)).second;
      encode(reference.value(work.source).values, quantized.dtype, x.data.data());
    }
    return tensors;
  }

  bool isAsked(Reader reader) const {
    return std::ranges::any_of(m_step.operands, [&](const StepOperand& operand) {
      return operand.access != OperandAccess::Read && !isOfCopies(operand) && readerOf(operand) == reader;
    });
  }

  void compute(std::span<std::byte* const> operands, Reader reader, std::vector<std::vector<double>>& results) {
    StepReference reference(m_graph, m_step, readOperands(operands, reader));
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const StepOperand& operand = m_step.operands[i];
      if (!isResult(i) || !operands[i] || readerOf(operand) != reader) continue;
      results[i] = reference.value(operand.key).values;
      if (operand.access == OperandAccess::Accumulate)
        std::ranges::transform(results[i], decoded(spec(i), operands[i]).values, results[i].begin(), std::plus<>());
    }
  }

  /// A gradient whose quantized form another reader uses.
  bool isForOther(const StepOperand& operand, Reader reader) const {
    if (operand.key.kind != OperandKind::GradOutput || numOperands(operand.key) < 2) return false;
    if (!operand.direction) return reader != Reader::Plain;
    return reader != (*operand.direction == Usage::Rowwise ? Reader::Rows : Reader::Columns);
  }

  StepTensors readOperands(std::span<std::byte* const> operands, Reader reader) const {
    StepTensors tensors;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const StepOperand& operand = m_step.operands[i];
      if (operand.access == OperandAccess::Read && !isOfCopies(operand) && !isForOther(operand, reader))
        tensors.emplace(operand.key, load(i, operands[i]));
    }
    return tensors;
  }

  const Graph& m_graph;
  const Plan& m_plan;
  const Step& m_step;
};

std::int64_t physicalMemoryBytes() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE));
}

class ReferenceBackend final : public Backend {
 public:
  const DeviceInfo& device() const override { return m_device; }
  Verdict supports(const KernelQuery&) const override { return Verdict::yes(); }

  Result<std::unique_ptr<Kernel>> compile(const Graph& graph, const Plan& plan, const Step& step,
                                          const CompileOptions&) override {
    if (step.isQuantize()) return makeQuantizeReference(graph, plan, step);
    if (step.kernel == "gathered_codes") return makeGatheredCodes(plan, step);
    if (step.kernel == "gathered_columns") return makeGatheredColumns(plan, step);
    if (step.scaleUpdate) return makeScaleUpdate(plan, step);
    if (step.kernel == kAdamWKernel) return makeAdamWReference(graph, plan, step);
    if (step.kernel == kGradNormKernel) return makeGradNormReference(graph, plan, step);
    return std::unique_ptr<Kernel>(std::make_unique<ReferenceKernel>(graph, plan, step));
  }

  Result<std::unique_ptr<DeviceMemory>> allocate(std::size_t sizeBytes) override {
    try {
      return std::unique_ptr<DeviceMemory>(std::make_unique<HostMemory>(sizeBytes));
    } catch (const std::bad_alloc&) {
      return Error{"The host has no memory left for " + std::to_string(sizeBytes) +
                       " bytes. Make the pipeline smaller with --set.",
                   ErrorKind::RunFailed};
    }
  }

  bool hasHostMemory() const override { return true; }
  std::shared_ptr<Backend> shareOf(int) override { return makeReferenceBackend(); }
  void upload(std::byte* device, std::span<const std::byte> host) override {
    std::memcpy(device, host.data(), host.size());
  }
  void download(std::span<std::byte> host, const std::byte* device) override {
    std::memcpy(host.data(), device, host.size());
  }
  void synchronize() override {}

 private:
  DeviceInfo m_device{.id = "reference",
                      .name = "Double-precision reference on the host",
                      .architecture = "double",
                      .memoryBytes = physicalMemoryBytes(),
                      .details = {{"purpose", "exact results for comparison; not a performance target"}}};
};

}  // namespace

std::shared_ptr<Backend> makeReferenceBackend() { return std::make_shared<ReferenceBackend>(); }

}  // namespace fuseline
