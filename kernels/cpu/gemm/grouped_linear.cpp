// Kernel "GroupedLinear": y = x W_g^T (+ b_g, or scales b_g) in the rows of each group g, and its gradients.
// The sizes of the groups come with each run. Products are therefore made for panels of rows, or, where the rows are
// summed over, for every size when it first occurs.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/grouped_linear_step.h"
#include "kernels/cpu/elementwise/strip_engine.h"
#include "kernels/cpu/gemm/linear_parts.h"
#include "kernels/cpu/workspace.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace fuseline::cpu::kernels {

namespace {
namespace grouped_linear_parts {

using namespace grouped;

/// The sums of a panel are still in the cache when the bias is added. Lower panels would cost more: see panel_gemm.cpp.
constexpr std::int64_t kPanelRows = 512;

LinearSize ofAllRows(const GroupedSize& size) { return {.m = size.rows, .n = size.n, .k = size.k}; }

std::vector<RowGroup> readGroups(const GroupSizes& groups, Pointers pointers) {
  return groups.read(pointers, std::memcpy);
}

// ---- GEMMs

/// C = A B for the rows of one group after the other, each group with a separate B.
class GroupProducts {
 public:
  GroupProducts() = default;
  /// problem: for all rows.
  GroupProducts(GemmProblem problem, std::int64_t numGroups) {
    problem.maxPanelRows = std::min(problem.m, kPanelRows);
    // Whether packing pays depends on the number of rows per B; only their mean is known.
    problem.m = std::max(problem.m / numGroups, problem.maxPanelRows);
    const bool keepsB = problem.packing == Packing::OnceForever;
    for (std::int64_t i = 0; i < (keepsB ? numGroups : 1); ++i) m_gemms.emplace_back(problem);
  }

  std::size_t workspaceBytes() const { return m_gemms.empty() ? 0 : m_gemms.front().workspaceBytes(); }
  Gemm& of(std::size_t group) { return m_gemms[m_gemms.size() == 1 ? 0 : group]; }

 private:
  std::vector<Gemm> m_gemms;
};

/// f(first, rows) for the panels of a group.
template <class Function>
void forEachPanel(const RowGroup& group, Function f) {
  for (std::int64_t row = 0; row < group.size; row += kPanelRows)
    f(group.first + row, std::min(kPanelRows, group.size - row));
}

/// The operands that a program names, by slot.
StripOperandOf stripOperands(ProgramOperands operands) {
  return [operands = std::move(operands)](const OperandKey& key) {
    const auto found = std::ranges::find(operands, key, &ProgramOperands::value_type::first);
    return StripOperand{found->second, static_cast<int>(found - operands.begin())};
  };
}

// ---- forward

struct ForwardParts {
  GroupedForwardStep step;
  GroupProducts products;
  std::optional<StripEngine> adder = std::nullopt;  // of the bias, if the GEMM does not add it itself
};

class GroupedForward final : public Kernel {
 public:
  explicit GroupedForward(ForwardParts parts) : m(std::move(parts)), m_size(m.step.groups.size) {}

  std::size_t workspaceBytes() const override {
    const std::size_t products = workspacePart(m.products.workspaceBytes());
    return m.adder ? products + sumsBytes() + m.adder->workspaceBytes(panelRows()) : products;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::vector<RowGroup> groups = readGroups(m.step.groups, pointers);
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (groups[i].size > 0) runGroup(i, groups[i], pointers, workspace);
  }

 private:
  std::int64_t panelRows() const { return std::min(m_size.rows, kPanelRows); }
  std::size_t sumsBytes() const {
    return workspacePart(static_cast<std::size_t>(panelRows() * m_size.n * sizeBytes(DType::F32)));
  }

  void runGroup(std::size_t index, const RowGroup& group, Pointers pointers, std::byte* workspace) {
    Gemm& product = m.products.of(index);
    std::byte* const bias = m.step.biases.at(pointers, index);
    std::byte* const sums = workspace + workspacePart(m.products.workspaceBytes());
    product.setBias(bias);
    product.prepareB(m.step.weights.at(pointers, index), workspace);
    forEachPanel(group, [&](std::int64_t first, std::int64_t rows) {
      std::byte* const y = rowOf(m.step.y, pointers, first);
      product.multiplyRows(rowOf(m.step.x, pointers, first), m.adder ? sums : y, rows, workspace);
      if (!m.adder) return;
      const std::array slots = {sums, bias, valueOf(m.step.scales, pointers, first), y};
      m.adder->run(slots, rows, sums + sumsBytes());
    });
  }

  ForwardParts m;
  GroupedSize m_size;
};

/// The addition that the GEMM cannot do itself: the sums are then float32, so that y is rounded once.
std::optional<StripEngine> makeAdder(const CompileRequest& request, const GroupedForwardStep& step,
                                     GemmProblem& problem) {
  if (!step.form.hasBias()) return std::nullopt;
  if (!step.form.isBiasScaled && request.decoded.empty() && canAdd(problem, step.biases.dtype())) {
    problem.biasType = step.biases.dtype();
    return std::nullopt;
  }
  problem.cType = DType::F32;
  return StripEngine(biasProgram(step.form.isBiasScaled), problem.n, request.settings.threads,
                     stripOperands(step.biasOperands()));
}

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  Result<GroupedForwardStep> step = readGroupedForward(request);
  if (!step) return step.error();
  const GroupedSize size = step->groups.size;
  GemmProblem problem = forwardProblem(request, ofAllRows(size), step->x, step->weights.any(), step->y.spec.dtype);
  std::optional<StripEngine> adder = makeAdder(request, *step, problem);
  return std::unique_ptr<Kernel>(std::make_unique<GroupedForward>(
      ForwardParts{std::move(*step), GroupProducts(problem, size.numGroups), std::move(adder)}));
}

// ---- backward

/// dx = dy W
class InputGrad {
 public:
  InputGrad(const CompileRequest& request, const GroupedBackwardStep& step)
      : m_gradX(step.gradX), m_gradY(step.gradYForInput), m_weights(step.weights) {
    if (!m_gradX) return;
    const GroupedSize& size = step.groups.size;
    m_products = GroupProducts(inputGradProblem(request, ofAllRows(size), m_gradY, m_weights.any(), m_gradX.spec.dtype),
                               size.numGroups);
  }

  std::size_t workspaceBytes() const { return m_products.workspaceBytes(); }

  void run(std::size_t index, const RowGroup& group, Pointers pointers, std::byte* workspace) {
    if (!m_gradX || group.size == 0) return;
    Gemm& product = m_products.of(index);
    product.prepareB(m_weights.at(pointers, index), workspace);
    forEachPanel(group, [&](std::int64_t first, std::int64_t rows) {
      product.multiplyRows(rowOf(m_gradY, pointers, first), rowOf(m_gradX, pointers, first), rows, workspace);
    });
  }

 private:
  Binding m_gradX, m_gradY;
  GroupedOperand m_weights;
  GroupProducts m_products;
};

/// dW = dy^T x, summed over the rows of a group
class WeightGrads {
 public:
  WeightGrads(const CompileRequest& request, const GroupedBackwardStep& step)
      : m_gradients(step.gradWeights), m_x(step.x), m_gradY(step.gradYForWeights) {
    if (!m_gradients.isPresent()) return;
    m_problem = weightGradProblem(request, ofAllRows(step.groups.size), m_gradY, m_x, m_gradients.any());
    m_workspaceBytes = productOf(step.groups.size.rows).workspaceBytes();  // fewer rows never need more
  }

  std::size_t workspaceBytes() const { return m_workspaceBytes; }

  void run(std::size_t index, const RowGroup& group, Pointers pointers, std::byte* workspace) {
    std::byte* const gradient = m_gradients.at(pointers, index);
    if (!gradient) return;
    productOf(group.size)
        .multiply(rowOf(m_gradY, pointers, group.first), rowOf(m_x, pointers, group.first), gradient, workspace);
  }

 private:
  /// Inputs stay the same from run to run, so the number of kept GEMMs does not exceed the number of groups.
  Gemm& productOf(std::int64_t rows) {
    const auto found = m_products.find(rows);
    if (found != m_products.end()) return found->second;
    GemmProblem problem = m_problem;
    problem.k = rows;
    return m_products.emplace(rows, problem).first->second;
  }

  GroupedOperand m_gradients;
  Binding m_x, m_gradY;
  GemmProblem m_problem;
  std::map<std::int64_t, Gemm> m_products;  // by number of rows
  std::size_t m_workspaceBytes = 0;
};

/// The gradients of the biases and of their scales, in one pass over dy.
class BiasGrads {
 public:
  BiasGrads(const CompileRequest& request, const GroupedBackwardStep& step)
      : m_step(step),
        m_unwantedBytes(
            workspacePart(static_cast<std::size_t>(step.groups.size.n * sizeBytes(step.gradBiases.dtype())))) {
    if (!step.hasBiasGrads()) return;
    m_engine.emplace(step.biasGradProgram(), step.groups.size.n, request.settings.threads,
                     stripOperands(step.biasGradOperands()));
    m_workspaceBytes = m_unwantedBytes + m_engine->workspaceBytes(step.groups.size.rows);
  }

  std::size_t workspaceBytes() const { return m_workspaceBytes; }

  void run(std::size_t index, const RowGroup& group, Pointers pointers, std::byte* workspace) {
    if (!m_engine) return;
    std::byte* const gradient = m_step.gradBiases.at(pointers, index);
    const std::array slots = {rowOf(m_step.gradY, pointers, group.first), valueOf(m_step.scales, pointers, group.first),
                              m_step.biases.at(pointers, index), gradient ? gradient : workspace,
                              valueOf(m_step.gradScales, pointers, group.first)};
    m_engine->run(slots, group.size, workspace + m_unwantedBytes);
  }

 private:
  GroupedBackwardStep m_step;
  std::size_t m_unwantedBytes;  // at the start of the workspace: the gradient of a bias that is not requested
  std::optional<StripEngine> m_engine;
  std::size_t m_workspaceBytes = 0;
};

class GroupedBackward final : public Kernel {
 public:
  GroupedBackward(const CompileRequest& request, const GroupedBackwardStep& step)
      : m_groups(step.groups), m_inputGrad(request, step), m_weightGrads(request, step), m_biasGrads(request, step) {}

  std::size_t workspaceBytes() const override {
    return std::max({m_inputGrad.workspaceBytes(), m_weightGrads.workspaceBytes(), m_biasGrads.workspaceBytes()});
  }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::vector<RowGroup> groups = readGroups(m_groups, pointers);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      m_inputGrad.run(i, groups[i], pointers, workspace);
      m_weightGrads.run(i, groups[i], pointers, workspace);
      m_biasGrads.run(i, groups[i], pointers, workspace);
    }
  }

 private:
  GroupSizes m_groups;
  InputGrad m_inputGrad;
  WeightGrads m_weightGrads;
  BiasGrads m_biasGrads;
};

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<GroupedBackwardStep> step = readGroupedBackward(request);
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(std::make_unique<GroupedBackward>(request, *step));
}

}  // namespace grouped_linear_parts
}  // namespace

KernelDef grouped_linear();

KernelDef grouped_linear() {
  using namespace grouped_linear_parts;
  return {
      .name = "GroupedLinear",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = byPhase(compileForward, compileBackward),
  };
}

}  // namespace fuseline::cpu::kernels
