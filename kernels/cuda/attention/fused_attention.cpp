// Graphs are made once, when a step is compiled; runs only name the memory.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/fused_attention.h"

#include "core/tensor/scaling.h"
#include "kernels/cuda/attention/attention_graph.h"
#include "kernels/cuda/attention/graph_sequences.h"
#include "kernels/cuda/support/workspace.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// Where a tensor of a graph is: an operand of the step.
struct GraphOperand {
  int tensor = -1;
  HeadBinding binding;
};

/// A tensor of a graph that only the step knows.
struct GraphScratch {
  int tensor = -1;
  std::size_t bytes = 0;
};

struct FusedParts {
  std::unique_ptr<PreparedGraph> graph;
  std::size_t numTensors = 0;
  std::vector<GraphOperand> operands;
  std::vector<GraphScratch> scratch;
  std::optional<GraphSequences> sequences;
  std::string way;
};

class FusedAttention final : public Kernel {
 public:
  explicit FusedAttention(FusedParts parts) : m(std::move(parts)) {}

  std::size_t workspaceBytes() const override {
    return scratchBytes() + (m.sequences ? m.sequences->workspaceBytes() : 0) + m.graph->workspaceBytes();
  }
  std::vector<std::string> ways() const override { return {m.way}; }

  void run(Pointers pointers, std::byte* workspace) override {
    std::vector<std::byte*> tensors(m.numTensors, nullptr);
    for (const GraphOperand& operand : m.operands)
      tensors[static_cast<std::size_t>(operand.tensor)] = operand.binding.at(pointers);
    for (const GraphScratch& part : m.scratch) {
      tensors[static_cast<std::size_t>(part.tensor)] = workspace;
      workspace += workspacePart(part.bytes);
    }
    if (m.sequences) workspace = m.sequences->begin(pointers, workspace, tensors);
    m.graph->run(tensors, workspace);
    if (m.sequences) m.sequences->end(pointers);
  }

 private:
  std::size_t scratchBytes() const {
    std::size_t bytes = 0;
    for (const GraphScratch& part : m.scratch) bytes += workspacePart(part.bytes);
    return bytes;
  }

  FusedParts m;
};

/// Operands of an attention by the tensors of its graph.
class GraphOperands {
 public:
  GraphOperands(const CompileRequest& request, const AttentionProblem& problem)
      : m_request(request), m_problem(problem) {}

  void addInput(int tensor, std::size_t slot) { m_operands.push_back({tensor, findHeads(m_request, m_problem, slot)}); }
  void addGradient(int tensor, std::size_t slot) {
    HeadBinding gradient = findHeadGradient(m_request, m_problem, slot);
    if (gradient)
      m_operands.push_back({tensor, std::move(gradient)});
    else
      m_unwanted.push_back(tensor);
  }
  /// The scale of a quantized input.
  void addScale(int tensor, std::size_t slot) {
    HeadBinding input = findHeads(m_request, m_problem, slot);
    input.firstByte = partsOf(input.whole.spec).scalesOffset;
    m_operands.push_back({tensor, std::move(input)});
  }
  void addOwn(int tensor, OperandKind kind) { m_operands.push_back({tensor, {.whole = findOwn(kind)}}); }
  Binding findOwn(OperandKind kind) const { return findOperand(m_request, {m_problem.places.attention, kind, 0}); }

  std::vector<GraphOperand> take() && { return std::move(m_operands); }
  /// Tensors of gradients that nobody asked for: they go to the workspace.
  const std::vector<int>& unwanted() const { return m_unwanted; }

 private:
  const CompileRequest& m_request;
  const AttentionProblem& m_problem;
  std::vector<GraphOperand> m_operands;
  std::vector<int> m_unwanted;
};

/// Enough for elements of any format. Entries of sequences one after another are no longer than one with all tokens.
std::size_t bytesInWorkspace(const GraphTensor& tensor) {
  const GraphExtents& dims = tensor.dims;  // of packed ones, too, the last element is within its own extent
  std::int64_t last = 1;
  for (std::size_t axis = tensor.offsets < 0 ? 0 : 1; axis < dims.size(); ++axis)
    last += (dims[axis] - 1) * tensor.strides[axis];
  return static_cast<std::size_t>(last) * sizeof(float);
}

struct GraphMemory {
  std::vector<int> scratch;  // tensors of the graph
  std::optional<GraphSequences> sequences = std::nullopt;
};

/// The oldest library that has attention on such a GPU; 0: any. Source: TransformerEngine 2.20.2 chooses so.
std::size_t oldestVersionOn(ComputeCapability capability) { return capability.major == 12 ? 91801 : 0; }

Result<std::unique_ptr<Kernel>> makeKernel(const CompileRequest& request, TensorGraph graph, GraphOperands operands,
                                           GraphMemory memory, std::string way) {
  graph.oldestVersion = std::max(graph.oldestVersion, oldestVersionOn(request.device.capability));
  Result<std::unique_ptr<PreparedGraph>> prepared = request.device.graphs->prepare(graph);
  if (!prepared) return prepared.error();
  std::vector<GraphScratch> scratch;
  for (const std::vector<int>& tensors : {memory.scratch, operands.unwanted()})
    for (const int tensor : tensors)
      scratch.push_back({tensor, bytesInWorkspace(graph.tensors[static_cast<std::size_t>(tensor)])});
  FusedParts parts{.graph = std::move(*prepared),
                   .numTensors = graph.tensors.size(),
                   .operands = std::move(operands).take(),
                   .scratch = std::move(scratch),
                   .sequences = std::move(memory.sequences),
                   .way = std::move(way)};
  for (const GraphOperand& operand : parts.operands)
    if (!operand.binding)
      return Error{fmt::format("step \"{}\" lacks a tensor of its attention.", request.step.name),
                   ErrorKind::RunFailed};
  return std::unique_ptr<Kernel>(std::make_unique<FusedAttention>(std::move(parts)));
}

void addInputs(GraphOperands& operands, int q, int k, int v) {
  operands.addInput(q, AttentionForm::kQuery);
  operands.addInput(k, AttentionForm::kKey);
  operands.addInput(v, AttentionForm::kValue);
}

Result<std::unique_ptr<Kernel>> makeFusedForward(const CompileRequest& request, const AttentionProblem& problem) {
  GraphOperands operands(request, problem);
  const bool hasLse = static_cast<bool>(operands.findOwn(OperandKind::Residual));
  const AttentionForwardGraph made = attentionForwardGraph(problem, hasLse);
  addInputs(operands, made.q, made.k, made.v);
  operands.addOwn(made.y, OperandKind::Output);
  if (made.lse >= 0) operands.addOwn(made.lse, OperandKind::Residual);
  std::optional<GraphSequences> sequences = GraphSequences::ifAny(request, problem, made.sequences);
  if (sequences)
    sequences->clearQueries({.whole = operands.findOwn(OperandKind::Output)}, problem.layouts.y,
                            operands.findOwn(OperandKind::Residual));
  return makeKernel(request, made.graph, std::move(operands), {.scratch = {}, .sequences = std::move(sequences)},
                    "attention by cuDNN, bitwise identical in every run");
}

Result<std::unique_ptr<Kernel>> makeFp8Forward(const CompileRequest& request, const AttentionProblem& problem) {
  GraphOperands operands(request, problem);
  const bool hasLse = static_cast<bool>(operands.findOwn(OperandKind::Residual));
  const AttentionForwardGraph made = fp8AttentionForwardGraph(problem, hasLse);
  addInputs(operands, made.q, made.k, made.v);
  operands.addScale(made.scaleQ, AttentionForm::kQuery);
  operands.addScale(made.scaleK, AttentionForm::kKey);
  operands.addScale(made.scaleV, AttentionForm::kValue);
  operands.addOwn(made.y, OperandKind::Output);
  if (made.lse >= 0) operands.addOwn(made.lse, OperandKind::Residual);
  return makeKernel(request, made.graph, std::move(operands), {.scratch = {made.amaxProbabilities, made.amaxY}},
                    "FP8 attention by cuDNN, bitwise identical in every run");
}

Result<std::unique_ptr<Kernel>> makeFusedBackward(const CompileRequest& request, const AttentionProblem& problem) {
  const AttentionBackwardGraph made = attentionBackwardGraph(problem);
  const AttentionLayouts& gradients = problem.gradients;
  GraphOperands operands(request, problem);
  addInputs(operands, made.q, made.k, made.v);
  operands.addOwn(made.y, OperandKind::Output);
  operands.addOwn(made.dy, OperandKind::GradOutput);
  operands.addOwn(made.lse, OperandKind::Residual);
  operands.addGradient(made.dq, AttentionForm::kQuery);
  operands.addGradient(made.dk, AttentionForm::kKey);
  operands.addGradient(made.dv, AttentionForm::kValue);
  std::optional<GraphSequences> sequences = GraphSequences::ifAny(request, problem, made.sequences);
  if (sequences) {
    sequences->readStatistics(made.lse, operands.findOwn(OperandKind::Residual));
    sequences->clearQueries(findHeadGradient(request, problem, AttentionForm::kQuery), gradients.q);
    sequences->clearKeys(findHeadGradient(request, problem, AttentionForm::kKey), gradients.k);
    sequences->clearKeys(findHeadGradient(request, problem, AttentionForm::kValue), gradients.v);
  }
  return makeKernel(request, made.graph, std::move(operands),
                    {.scratch = made.scratch, .sequences = std::move(sequences)},
                    "gradients of attention by cuDNN; the sum for x has no fixed order, so its last bits may vary");
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeFusedAttention(const CompileRequest& request, const AttentionProblem& problem) {
  if (!request.device.graphs) return Error{"this device has no cuDNN"};
  const Phase phase = request.step.phase;
  if (const Verdict fits = fitsAttentionGraph(problem, phase, request.device.capability); !fits)
    return Error{fits.reason()};
  return phase == Phase::Forward ? makeFusedForward(request, problem) : makeFusedBackward(request, problem);
}

Result<std::unique_ptr<Kernel>> makeFp8Attention(const CompileRequest& request, const AttentionProblem& problem) {
  if (!request.device.graphs) return Error{"this device has no cuDNN"};
  const std::optional<QuantizerSpec>& quantizer = request.member(0).quantizers.input.rowwise;
  if (const Verdict fits =
          fitsFp8AttentionGraph(problem, request.step.phase, quantizer->format, request.device.capability);
      !fits)
    return Error{fits.reason()};
  return makeFp8Forward(request, problem);
}

}  // namespace fuseline::cuda
