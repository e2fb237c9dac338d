// Graphs are made once, when a step is compiled; runs only name the memory.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/fused_attention.h"

#include "kernels/cuda/attention/attention_graph.h"
#include "kernels/cuda/support/workspace.h"

#include <utility>
#include <vector>

namespace fuseline::cuda {

namespace {

/// Where a tensor of a graph is: an operand of the step.
struct GraphOperand {
  int tensor = -1;
  Binding binding;
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
  std::string way;
};

class FusedAttention final : public Kernel {
 public:
  explicit FusedAttention(FusedParts parts) : m(std::move(parts)) {}

  std::size_t workspaceBytes() const override { return scratchBytes() + m.graph->workspaceBytes(); }
  std::vector<std::string> ways() const override { return {m.way}; }

  void run(Pointers pointers, std::byte* workspace) override {
    std::vector<std::byte*> tensors(m.numTensors, nullptr);
    for (const GraphOperand& operand : m.operands)
      tensors[static_cast<std::size_t>(operand.tensor)] = operand.binding.at(pointers);
    for (const GraphScratch& part : m.scratch) {
      tensors[static_cast<std::size_t>(part.tensor)] = workspace;
      workspace += workspacePart(part.bytes);
    }
    m.graph->run(tensors, workspace);
  }

 private:
  std::size_t scratchBytes() const {
    std::size_t bytes = 0;
    for (const GraphScratch& part : m.scratch) bytes += workspacePart(part.bytes);
    return bytes;
  }

  FusedParts m;
};

/// operands: by the tensors that they are. A tensor that nobody asked for goes to the workspace.
Result<std::unique_ptr<Kernel>> makeKernel(const CompileRequest& request, const TensorGraph& graph,
                                           const std::vector<std::pair<int, OperandKey>>& operands,
                                           std::vector<GraphScratch> scratch, std::string way) {
  Result<std::unique_ptr<PreparedGraph>> prepared = request.device.graphs->prepare(graph);
  if (!prepared) return prepared.error();
  FusedParts parts{.graph = std::move(*prepared),
                   .numTensors = graph.tensors.size(),
                   .scratch = std::move(scratch),
                   .way = std::move(way)};
  for (const auto& [tensor, key] : operands) {
    Binding binding = findOperand(request, key);
    if (binding) {
      parts.operands.push_back({tensor, std::move(binding)});
      continue;
    }
    const bool isGradient = key.kind == OperandKind::GradInput;
    if (!isGradient) return missingOperand(request, key);
    const GraphTensor& unwanted = graph.tensors[static_cast<std::size_t>(tensor)];
    const GraphExtents& dims = unwanted.dims;
    parts.scratch.push_back({tensor, static_cast<std::size_t>(dims[0] * dims[1] * dims[2] * dims[3]) * sizeof(float)});
  }
  return std::unique_ptr<Kernel>(std::make_unique<FusedAttention>(std::move(parts)));
}

constexpr OperandKey input(int slot) { return {0, OperandKind::Input, slot}; }
constexpr OperandKey gradient(int slot) { return {0, OperandKind::GradInput, slot}; }
constexpr OperandKey kOutput = {0, OperandKind::Output, 0};
constexpr OperandKey kLseKey = {0, OperandKind::Residual, AttentionForm::kLse};

Result<std::unique_ptr<Kernel>> makeFusedForward(const CompileRequest& request, const AttentionProblem& problem) {
  const AttentionForwardGraph made = attentionForwardGraph(problem, static_cast<bool>(findOperand(request, kLseKey)));
  std::vector<std::pair<int, OperandKey>> operands = {{made.q, input(AttentionForm::kQuery)},
                                                      {made.k, input(AttentionForm::kKey)},
                                                      {made.v, input(AttentionForm::kValue)},
                                                      {made.y, kOutput}};
  if (made.lse >= 0) operands.emplace_back(made.lse, kLseKey);
  return makeKernel(request, made.graph, operands, {}, "attention by cuDNN, the same bits in every run");
}

Result<std::unique_ptr<Kernel>> makeFusedBackward(const CompileRequest& request, const AttentionProblem& problem) {
  const AttentionBackwardGraph made = attentionBackwardGraph(problem);
  const TokenLayout& q = problem.layouts.q;
  const auto rows = static_cast<std::size_t>(q.batch * q.heads * q.tokens);
  return makeKernel(
      request, made.graph,
      {{made.q, input(AttentionForm::kQuery)},
       {made.k, input(AttentionForm::kKey)},
       {made.v, input(AttentionForm::kValue)},
       {made.y, kOutput},
       {made.dy, {0, OperandKind::GradOutput, 0}},
       {made.lse, kLseKey},
       {made.dq, gradient(AttentionForm::kQuery)},
       {made.dk, gradient(AttentionForm::kKey)},
       {made.dv, gradient(AttentionForm::kValue)}},
      {{made.deltas, rows * sizeof(float)}, {made.sums, rows * static_cast<std::size_t>(q.channels) * sizeof(float)}},
      "gradients of attention by cuDNN; that of x is added up in any order, so that its last bits may vary");
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeFusedAttention(const CompileRequest& request, const AttentionProblem& problem) {
  if (!request.device.graphs) return Error{"this device has no cuDNN"};
  const Phase phase = request.step.phase;
  if (const Verdict fits = fitsAttentionGraph(problem, phase, request.device.capability); !fits)
    return Error{fits.reason()};
  return phase == Phase::Forward ? makeFusedForward(request, problem) : makeFusedBackward(request, problem);
}

}  // namespace fuseline::cuda
