// Kernel "GroupedLinear": y = x W_g^T (+ b_g, or scales b_g) in the rows of each group g, and its gradients.
// The sizes of the groups come with each run. Products are therefore made for panels of rows, or, where the rows are
// summed over, for every size when it first occurs.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/grouped_programs.h"
#include "core/runtime/grouped_operands.h"
#include "kernels/cpu/elementwise/strip_engine.h"
#include "kernels/cpu/gemm/linear_parts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace fuseline::cpu::kernels {

namespace {

using namespace grouped;

/// The sums of a panel are still in the cache when the bias is added. Lower panels would cost more: see panel_gemm.cpp.
constexpr std::int64_t kPanelRows = 512;

std::size_t roundUp64(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

GroupedForm formOf(const CompileRequest& request) { return groupedForm(request.member(0).attributes); }

LinearSize ofAllRows(const GroupedSize& size) { return {.m = size.rows, .n = size.n, .k = size.k}; }

using GroupedParameters = GroupedOperand<Binding>;

// ---- operands

/// Reads the sizes of the groups. They come from the user, so they are checked.
class GroupReader {
 public:
  static Result<GroupReader> make(const CompileRequest& request, const GroupedSize& size) {
    const Result<Binding> splitSizes = requireOperand(request, kSplitSizes);
    if (!splitSizes) return splitSizes.error();
    return GroupReader(*splitSizes, size);
  }

  std::vector<RowGroup> read(Pointers pointers) const {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(m_size.numGroups));
    std::memcpy(sizes.data(), m_splitSizes.at(pointers), sizes.size() * sizeof(std::int64_t));
    Result<std::vector<RowGroup>> groups = divideRows(sizes, m_size.rows);
    if (!groups) throw std::runtime_error(groups.error().message);
    return std::move(*groups);
  }

 private:
  GroupReader(Binding splitSizes, const GroupedSize& size) : m_splitSizes(std::move(splitSizes)), m_size(size) {}

  Binding m_splitSizes;
  GroupedSize m_size;
};

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
StripOperandOf stripOperands(std::vector<std::pair<OperandKey, DType>> operands) {
  return [operands = std::move(operands)](const OperandKey& key) {
    const auto found = std::ranges::find(operands, key, &std::pair<OperandKey, DType>::first);
    return StripOperand{found->second, static_cast<int>(found - operands.begin())};
  };
}

// ---- forward

struct ForwardParts {
  GroupedSize size;
  GroupReader groups;
  Binding x, scales, y;
  GroupedParameters weights, biases;
  GroupProducts products;
  std::optional<StripEngine> adder;  // of the bias, if the GEMM does not add it itself
};

class GroupedForward final : public Kernel {
 public:
  explicit GroupedForward(ForwardParts parts) : m(std::move(parts)) {}

  std::size_t workspaceBytes() const override {
    const std::size_t products = roundUp64(m.products.workspaceBytes());
    return m.adder ? products + sumsBytes() + m.adder->workspaceBytes(panelRows()) : products;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::vector<RowGroup> groups = m.groups.read(pointers);
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (groups[i].size > 0) runGroup(i, groups[i], pointers, workspace);
  }

 private:
  std::int64_t panelRows() const { return std::min(m.size.rows, kPanelRows); }
  std::size_t sumsBytes() const {
    return roundUp64(static_cast<std::size_t>(panelRows() * m.size.n * sizeBytes(DType::F32)));
  }

  void runGroup(std::size_t index, const RowGroup& group, Pointers pointers, std::byte* workspace) {
    Gemm& product = m.products.of(index);
    std::byte* const bias = m.biases.at(pointers, index);
    std::byte* const sums = workspace + roundUp64(m.products.workspaceBytes());
    product.setBias(bias);
    product.prepareB(m.weights.at(pointers, index), workspace);
    forEachPanel(group, [&](std::int64_t first, std::int64_t rows) {
      std::byte* const y = rowOf(m.y, pointers, first);
      product.multiplyRows(rowOf(m.x, pointers, first), m.adder ? sums : y, rows, workspace);
      if (!m.adder) return;
      const std::array slots = {sums, bias, valueOf(m.scales, pointers, first), y};
      m.adder->run(slots, rows, sums + sumsBytes());
    });
  }

  ForwardParts m;
};

/// The addition that the GEMM cannot do itself: the sums are then float32, so that y is rounded once.
std::optional<StripEngine> makeAdder(const CompileRequest& request, const GroupedForm& form, const ForwardParts& parts,
                                     GemmProblem& problem) {
  if (!form.hasBias()) return std::nullopt;
  const DType bias = parts.biases.dtype();
  if (!form.isBiasScaled && !request.decoded && canAdd(problem, bias)) {
    problem.biasType = bias;
    return std::nullopt;
  }
  const DType y = std::exchange(problem.cType, DType::F32);
  return StripEngine(biasProgram(form.isBiasScaled), problem.n, request.settings.threads,
                     stripOperands({{kSums, DType::F32}, {kBias, bias}, {kScales, parts.scales.spec.dtype}, {kY, y}}));
}

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  const Result<Binding> x = requireOperand(request, kX);
  if (!x) return x.error();
  const Result<Binding> y = requireOperand(request, kY);
  if (!y) return y.error();
  const GroupedSize size = groupedSize(request, x->spec);
  Result<GroupReader> groups = GroupReader::make(request, size);
  if (!groups) return groups.error();
  const GroupedForm form = formOf(request);
  ForwardParts parts{.size = size,
                     .groups = std::move(*groups),
                     .x = *x,
                     .scales = findOperand(request, kScales),
                     .y = *y,
                     .weights = {request, OperandKind::Parameter, form.weights},
                     .biases = {request, OperandKind::Parameter, form.biases}};
  GemmProblem problem = forwardProblem(request, ofAllRows(size), *x, parts.weights.any(), y->spec.dtype);
  parts.adder = makeAdder(request, form, parts, problem);
  parts.products = GroupProducts(problem, size.numGroups);
  return std::unique_ptr<Kernel>(std::make_unique<GroupedForward>(std::move(parts)));
}

// ---- backward

/// dx = dy W
class InputGrad {
 public:
  InputGrad(const CompileRequest& request, const GroupedSize& size, const Binding& gradY)
      : m_gradX(findOperand(request, kGradX)),
        m_gradY(gradY),
        m_weights(request, OperandKind::Parameter, formOf(request).weights) {
    if (!m_gradX) return;
    m_products = GroupProducts(inputGradProblem(request, ofAllRows(size), gradY, m_weights.any(), m_gradX.spec.dtype),
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
  GroupedParameters m_weights;
  GroupProducts m_products;
};

/// dW = dy^T x, summed over the rows of a group
class WeightGrads {
 public:
  WeightGrads(const CompileRequest& request, const GroupedSize& size, const Binding& gradY)
      : m_gradients(request, OperandKind::GradParameter, formOf(request).weights),
        m_x(findOperand(request, kX)),
        m_gradY(gradY) {
    if (!m_gradients.isPresent()) return;
    m_problem = weightGradProblem(request, ofAllRows(size), gradY, m_x, m_gradients.any());
    m_workspaceBytes = productOf(size.rows).workspaceBytes();  // fewer rows never need more
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

  GroupedParameters m_gradients;
  Binding m_x, m_gradY;
  GemmProblem m_problem;
  std::map<std::int64_t, Gemm> m_products;  // by number of rows
  std::size_t m_workspaceBytes = 0;
};

/// The gradients of the biases and of their scales, in one pass over dy.
class BiasGrads {
 public:
  BiasGrads(const CompileRequest& request, const GroupedSize& size, const Binding& gradY)
      : m_gradients(request, OperandKind::GradParameter, formOf(request).biases),
        m_biases(request, OperandKind::Parameter, formOf(request).biases),
        m_scales(findOperand(request, kScales)),
        m_gradScales(findOperand(request, kGradScales)),
        m_gradY(gradY),
        m_unwantedBytes(roundUp64(static_cast<std::size_t>(size.n * sizeBytes(m_gradients.dtype())))) {
    if (!m_gradients.isPresent() && !m_gradScales) return;
    m_engine.emplace(biasGradProgram(formOf(request).isBiasScaled, m_gradients.isPresent(), bool(m_gradScales)), size.n,
                     request.settings.threads,
                     stripOperands({{kGradY, gradY.spec.dtype},
                                    {kScales, m_scales.spec.dtype},
                                    {kBias, m_biases.dtype()},
                                    {kGradBias, m_gradients.dtype()},
                                    {kGradScales, m_gradScales.spec.dtype}}));
    m_workspaceBytes = m_unwantedBytes + m_engine->workspaceBytes(size.rows);
  }

  std::size_t workspaceBytes() const { return m_workspaceBytes; }

  void run(std::size_t index, const RowGroup& group, Pointers pointers, std::byte* workspace) {
    if (!m_engine) return;
    std::byte* const gradient = m_gradients.at(pointers, index);
    const std::array slots = {rowOf(m_gradY, pointers, group.first), valueOf(m_scales, pointers, group.first),
                              m_biases.at(pointers, index), gradient ? gradient : workspace,
                              valueOf(m_gradScales, pointers, group.first)};
    m_engine->run(slots, group.size, workspace + m_unwantedBytes);
  }

 private:
  GroupedParameters m_gradients, m_biases;
  Binding m_scales, m_gradScales, m_gradY;
  std::size_t m_unwantedBytes;  // at the start of the workspace: the gradient of a bias that is not requested
  std::optional<StripEngine> m_engine;
  std::size_t m_workspaceBytes = 0;
};

class GroupedBackward final : public Kernel {
 public:
  GroupedBackward(GroupReader groups, InputGrad inputGrad, WeightGrads weightGrads, BiasGrads biasGrads)
      : m_groups(std::move(groups)),
        m_inputGrad(std::move(inputGrad)),
        m_weightGrads(std::move(weightGrads)),
        m_biasGrads(std::move(biasGrads)) {}

  std::size_t workspaceBytes() const override {
    return std::max({m_inputGrad.workspaceBytes(), m_weightGrads.workspaceBytes(), m_biasGrads.workspaceBytes()});
  }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::vector<RowGroup> groups = m_groups.read(pointers);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      m_inputGrad.run(i, groups[i], pointers, workspace);
      m_weightGrads.run(i, groups[i], pointers, workspace);
      m_biasGrads.run(i, groups[i], pointers, workspace);
    }
  }

 private:
  GroupReader m_groups;
  InputGrad m_inputGrad;
  WeightGrads m_weightGrads;
  BiasGrads m_biasGrads;
};

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<Binding> gradY = requireOperand(request, kGradY);
  if (!gradY) return gradY.error();
  const GroupedSize size = groupedSize(request, gradY->spec);
  Result<GroupReader> groups = GroupReader::make(request, size);
  if (!groups) return groups.error();
  const auto gradientFor = [&](Direction product) { return findOperand(request, kGradY, product); };
  return std::unique_ptr<Kernel>(
      std::make_unique<GroupedBackward>(std::move(*groups), InputGrad(request, size, gradientFor(Direction::Rowwise)),
                                        WeightGrads(request, size, gradientFor(Direction::Columnwise)),
                                        BiasGrads(request, size, Binding{findPlainOperand(request, kGradY)})));
}

}  // namespace

KernelDef grouped_linear();

KernelDef grouped_linear() {
  return {
      .name = "GroupedLinear",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile =
          [](const CompileRequest& request) {
            return request.step.phase == Phase::Forward ? compileForward(request) : compileBackward(request);
          },
  };
}

}  // namespace fuseline::cpu::kernels
