// Kernel "GroupedLinear": y = x W_g^T (+ b_g, or scales b_g) in the rows of each group g, and its gradients.
// The sizes of the groups are data. The host reads them in the first run and prepares GEMMs for every size, and later
// runs may be recorded; where runs differ, as in training, it reads them in every run, and none is recorded. Groups are
// one launch where the library has one for them; else they run concurrently: few of them fill a GPU alone.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/grouped_linear_step.h"
#include "kernels/cuda/elementwise/program_runner.h"
#include "kernels/cuda/gemm/group_products.h"
#include "kernels/cuda/gemm/linear_parts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace fuseline::cuda::kernels {

namespace {
namespace grouped_linear_parts {

using namespace grouped;

LinearSize ofAllRows(const CompileRequest& request, const GroupedSize& size) {
  return {.m = size.rows, .n = size.n, .k = size.k, .split = request.member(0).quantizers.splitAccumulators};
}

// ---- operands

/// Reads the sizes of the groups in the first run, or in every run.
class GroupReader {
 public:
  GroupReader(GroupSizes sizes, const DeviceContext& device) : m_splitSizes(std::move(sizes)), m_device(&device) {}

  const std::vector<RowGroup>& read(Pointers pointers) {
    if (m_groups.empty() || !m_splitSizes.areFixed) {
      m_groups = m_splitSizes.read(pointers, m_device->readBack);
      m_sizes.clear();
      std::ranges::transform(m_groups, std::back_inserter(m_sizes), &RowGroup::size);
    }
    return m_groups;
  }
  /// The sizes that were read.
  const std::vector<std::int64_t>& sizes() const { return m_sizes; }

 private:
  GroupSizes m_splitSizes;
  const DeviceContext* m_device;
  std::vector<RowGroup> m_groups;  // none: not read yet
  std::vector<std::int64_t> m_sizes;
};

// ---- programs

using Memory = std::map<OperandKey, std::byte*>;

/// An elementwise program for the rows of a group at a time. Grid: [rows, N].
class GroupProgram {
 public:
  static Result<GroupProgram> make(const CompileRequest& request, const GroupedSize& size,
                                   const ElementwiseProgram& program, const ProgramOperands& operands) {
    const std::map<OperandKey, DType> dtypes(operands.begin(), operands.end());
    const auto dtypeOf = [&](const OperandKey& key) { return dtypes.at(key); };
    Result<DeviceProgram> compiled = compileProgram(program, dtypeOf);
    if (!compiled) return compiled.error();
    const Shapes shapes{.cols = size.n,
                        .hasColumnSums = !program.columnSums.empty(),
                        .numMultiprocessors = request.device.numMultiprocessors};
    const ElementwiseShape tallest = shapes.of(size.rows);
    const auto parts =
        static_cast<std::size_t>(mostParts(compiled->program, tallest, request.device.numMultiprocessors));
    return GroupProgram(ProgramRunner(std::move(*compiled), tallest, dtypeOf, request.device), shapes, parts);
  }

  std::size_t workspaceBytes() const { return m_parts * sizeof(float); }

  /// memory: where the rows of the group begin; nullptr for a sum that is not requested.
  void run(std::int64_t rows, const Memory& memory, const Lane& lane) {
    std::vector<std::byte*> operands;
    for (const OperandKey& key : m_runner.operands()) operands.push_back(memory.at(key));
    m_runner.run(m_shapes.of(rows), operands, lane.workspace, lane.stream);
  }

 private:
  struct Shapes {
    std::int64_t cols = 0;
    bool hasColumnSums = false;
    int numMultiprocessors = 1;

    ElementwiseShape of(std::int64_t rows) const {
      return elementwiseShape(rows, cols, packingOfRows(cols), hasColumnSums, {numMultiprocessors});
    }
  };

  GroupProgram(ProgramRunner runner, const Shapes& shapes, std::size_t parts)
      : m_runner(std::move(runner)), m_shapes(shapes), m_parts(parts) {}

  ProgramRunner m_runner;
  Shapes m_shapes;
  std::size_t m_parts;
};

LaneTurns turnsOf(const DeviceContext& device, std::int64_t numGroups, std::size_t laneBytes) {
  return {device.lanes, device.stream, static_cast<std::size_t>(numGroups), laneBytes};
}

// ---- forward

struct ForwardParts {
  GroupedForwardStep step;
  GroupFactor x, weights;
  GroupProducts products = {};
  std::optional<GroupProgram> adder = std::nullopt;  // of the scaled bias
};

class GroupedForward final : public Kernel {
 public:
  GroupedForward(ForwardParts parts, const DeviceContext& device)
      : m(std::move(parts)),
        m_size(m.step.groups.size),
        m_groups(m.step.groups, device),
        m_turns(turnsOf(device, m_size.numGroups, m.products.workspaceBytes())) {}

  std::size_t workspaceBytes() const override { return gemmBytes() + sumsBytes(); }
  std::vector<std::string> ways() const override { return m.products.ways(); }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::vector<RowGroup>& groups = m_groups.read(pointers);
    m.products.begin(groups, pointers);
    const auto sums = [&](std::size_t i) { return sumsOf(groups[i], pointers, workspace); };
    if (m.products.areTogether()) {
      m.products.multiplyTogether(
          groups, [&](std::size_t i) { return GemmPointers{.c = sums(i)}; }, workspace);
      if (!m.adder) return;
    }
    m_turns.run(m_groups.sizes(), workspace, [&](std::size_t i, const Lane& lane) {
      if (groups[i].size > 0) runGroup(i, groups[i], pointers, sums(i), lane);
    });
  }

 private:
  std::size_t gemmBytes() const { return std::max(m_turns.workspaceBytes(), m.products.togetherBytes()); }

  /// Where the sums wait for their bias: y itself, if it can hold them.
  bool hasSums() const { return m.adder && m.step.y.spec.dtype != DType::F32; }
  std::size_t sumsBytes() const {
    return hasSums() ? static_cast<std::size_t>(m_size.rows * m_size.n * sizeBytes(DType::F32)) : 0;
  }

  std::byte* sumsOf(const RowGroup& group, Pointers pointers, std::byte* workspace) const {
    if (!hasSums()) return rowOf(m.step.y, pointers, group.first);
    return workspace + gemmBytes() + group.first * m_size.n * sizeBytes(DType::F32);
  }

  void runGroup(std::size_t index, const RowGroup& group, Pointers pointers, std::byte* sums, const Lane& lane) {
    std::byte* const bias = m.step.biases.at(pointers, index);
    if (!m.products.areTogether())
      m.products.multiply(index, group.size, {.bias = m.adder ? nullptr : bias, .c = sums}, lane);
    if (!m.adder) return;
    const Memory memory = {{kSums, sums},
                           {kBias, bias},
                           {kScales, valueOf(m.step.scales, pointers, group.first)},
                           {kY, rowOf(m.step.y, pointers, group.first)}};
    m.adder->run(group.size, memory, lane);
  }

  ForwardParts m;
  GroupedSize m_size;
  GroupReader m_groups;
  LaneTurns m_turns;
};

/// Adds a scaled bias to the GEMMs of `problem`, whose results become float32, so that y is rounded once.
Result<GroupProgram> makeAdder(const CompileRequest& request, const GroupedForwardStep& step, GemmProblem& problem) {
  problem.cType = DType::F32;
  return GroupProgram::make(request, step.groups.size, biasProgram(true), step.biasOperands());
}

/// The GEMM adds a bias that is not scaled.
Result<void> addProducts(const CompileRequest& request, ForwardParts& parts) {
  const GroupedForwardStep& step = parts.step;
  GemmProblem problem =
      forwardProblem(ofAllRows(request, step.groups.size), parts.x.any(), parts.weights.any(), step.y.spec);
  problem.hasBias = step.form.hasBias() && !step.form.isBiasScaled;
  if (step.form.isBiasScaled) {
    Result<GroupProgram> adder = makeAdder(request, step, problem);
    if (!adder) return adder.error();
    parts.adder = std::move(*adder);
  }
  Result<GroupProducts> products = GroupProducts::make(request, problem, &GemmProblem::m, parts.x, parts.weights);
  if (!products) return products.error();
  parts.products = std::move(*products);
  return {};
}

Result<std::unique_ptr<Kernel>> compileForward(const CompileRequest& request) {
  Result<GroupedForwardStep> step = readGroupedForward(request);
  if (!step) return step.error();
  GroupFactor x(step->x);
  GroupFactor weights(request, step->form.weights);
  ForwardParts parts{std::move(*step), std::move(x), std::move(weights)};
  if (Result<void> added = addProducts(request, parts); !added) return added.error();
  return std::unique_ptr<Kernel>(std::make_unique<GroupedForward>(std::move(parts), request.device));
}

// ---- backward

/// dx = dy W, if it is requested.
class InputGrad {
 public:
  static Result<InputGrad> make(const CompileRequest& request, const GroupedBackwardStep& step) {
    InputGrad made;
    made.m_gradX = step.gradX;
    if (!made.m_gradX) return made;
    const GroupFactor gradY(step.gradYForInput);
    const GroupFactor weights(request, step.form.weights);
    Result<GroupProducts> products = GroupProducts::make(
        request, inputGradProblem(ofAllRows(request, step.groups.size), gradY.any(), weights.any(), step.gradX.spec),
        &GemmProblem::m, gradY, weights);
    if (!products) return products.error();
    made.m_products = std::move(*products);
    return made;
  }

  std::size_t workspaceBytes() const { return m_products.workspaceBytes(); }
  std::vector<std::string> ways() const { return m_products.ways(); }

  std::size_t togetherBytes() const { return m_products.togetherBytes(); }
  /// Is nothing left for run()?
  bool isDone() const { return !m_gradX || m_products.areTogether(); }
  /// Multiplies the groups that are together.
  void begin(std::span<const RowGroup> groups, Pointers pointers, std::byte* workspace) {
    m_products.begin(groups, pointers);
    if (!m_products.areTogether()) return;
    m_products.multiplyTogether(
        groups, [&](std::size_t i) { return GemmPointers{.c = rowOf(m_gradX, pointers, groups[i].first)}; }, workspace);
  }
  void run(std::size_t index, const RowGroup& group, Pointers pointers, const Lane& lane) {
    if (isDone() || group.size == 0) return;
    m_products.multiply(index, group.size, {.c = rowOf(m_gradX, pointers, group.first)}, lane);
  }

 private:
  Binding m_gradX;
  GroupProducts m_products;
};

/// dW = dy^T x, summed over the rows of a group, if it is requested.
class WeightGrads {
 public:
  static Result<WeightGrads> make(const CompileRequest& request, const GroupedBackwardStep& step) {
    WeightGrads made(step.gradWeights);
    if (!made.m_gradients.isPresent()) return made;
    const GroupFactor gradY(step.gradYForWeights);
    const GroupFactor x(step.x);
    Result<GroupProducts> products = GroupProducts::make(
        request, weightGradProblem(ofAllRows(request, step.groups.size), gradY.any(), x.any(), made.m_gradients.any()),
        &GemmProblem::k, gradY, x);
    if (!products) return products.error();
    made.m_products = std::move(*products);
    return made;
  }

  std::size_t workspaceBytes() const { return m_products.workspaceBytes(); }
  std::vector<std::string> ways() const { return m_products.ways(); }

  std::size_t togetherBytes() const { return m_products.togetherBytes(); }
  /// Is nothing left for run()?
  bool isDone() const { return !m_gradients.isPresent() || m_products.areTogether(); }
  /// Multiplies the groups that are together.
  void begin(std::span<const RowGroup> groups, Pointers pointers, std::byte* workspace) {
    m_products.begin(groups, pointers);
    if (!m_products.areTogether()) return;
    m_products.multiplyTogether(
        groups, [&](std::size_t i) { return resultOf(pointers, i); }, workspace);
  }
  void run(std::size_t index, const RowGroup& group, Pointers pointers, const Lane& lane) {
    if (isDone()) return;
    const GemmPointers result = resultOf(pointers, index);
    if (result.c) m_products.multiply(index, group.size, result, lane);
  }

 private:
  explicit WeightGrads(GroupedOperand gradients) : m_gradients(std::move(gradients)) {}

  /// A group without rows has a zero gradient, or leaves the accumulated one unchanged.
  GemmPointers resultOf(Pointers pointers, std::size_t group) const {
    std::byte* const gradient = m_gradients.at(pointers, group);
    const bool isAdded = m_gradients.any().access == OperandAccess::Accumulate;
    return {.addend = isAdded ? gradient : nullptr, .c = gradient};
  }

  GroupedOperand m_gradients;
  GroupProducts m_products;
};

/// The gradients of the biases and of their scales, in one pass over dy.
class BiasGrads {
 public:
  static Result<BiasGrads> make(const CompileRequest& request, const GroupedBackwardStep& step) {
    BiasGrads made(step);
    if (!step.hasBiasGrads()) return made;
    Result<GroupProgram> program =
        GroupProgram::make(request, step.groups.size, step.biasGradProgram(), step.biasGradOperands());
    if (!program) return program.error();
    made.m_program = std::move(*program);
    return made;
  }

  std::size_t workspaceBytes() const { return m_program ? m_program->workspaceBytes() : 0; }
  bool isDone() const { return !m_program; }

  void run(std::size_t index, const RowGroup& group, Pointers pointers, const Lane& lane) {
    if (!m_program) return;
    const Memory memory = {{kGradY, rowOf(m_step.gradY, pointers, group.first)},
                           {kScales, valueOf(m_step.scales, pointers, group.first)},
                           {kBias, m_step.biases.at(pointers, index)},
                           {kGradBias, m_step.gradBiases.at(pointers, index)},
                           {kGradScales, valueOf(m_step.gradScales, pointers, group.first)}};
    if (memory.at(kGradBias) || memory.at(kGradScales)) m_program->run(group.size, memory, lane);
  }

 private:
  explicit BiasGrads(GroupedBackwardStep step) : m_step(std::move(step)) {}

  GroupedBackwardStep m_step;
  std::optional<GroupProgram> m_program;
};

struct BackwardParts {
  GroupReader groups;
  InputGrad inputGrad;
  WeightGrads weightGrads;
  BiasGrads biasGrads;
};

class GroupedBackward final : public Kernel {
 public:
  GroupedBackward(BackwardParts parts, const GroupedSize& size, const DeviceContext& device)
      : m(std::move(parts)), m_turns(turnsOf(device, size.numGroups, laneBytes())) {}

  std::size_t workspaceBytes() const override {
    return std::max({m_turns.workspaceBytes(), m.inputGrad.togetherBytes(), m.weightGrads.togetherBytes()});
  }
  std::vector<std::string> ways() const override {
    std::vector<std::string> ways = m.inputGrad.ways();
    for (std::string& way : m.weightGrads.ways())
      if (std::ranges::find(ways, way) == ways.end()) ways.push_back(std::move(way));
    return ways;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::vector<RowGroup>& groups = m.groups.read(pointers);
    m.inputGrad.begin(groups, pointers, workspace);
    m.weightGrads.begin(groups, pointers, workspace);
    if (m.inputGrad.isDone() && m.weightGrads.isDone() && m.biasGrads.isDone()) return;
    m_turns.run(m.groups.sizes(), workspace, [&](std::size_t i, const Lane& lane) {
      m.inputGrad.run(i, groups[i], pointers, lane);
      m.weightGrads.run(i, groups[i], pointers, lane);
      m.biasGrads.run(i, groups[i], pointers, lane);
    });
  }

 private:
  std::size_t laneBytes() const {
    return std::max({m.inputGrad.workspaceBytes(), m.weightGrads.workspaceBytes(), m.biasGrads.workspaceBytes()});
  }

  BackwardParts m;
  LaneTurns m_turns;
};

Result<std::unique_ptr<Kernel>> compileBackward(const CompileRequest& request) {
  const Result<GroupedBackwardStep> step = readGroupedBackward(request);
  if (!step) return step.error();
  Result<InputGrad> inputGrad = InputGrad::make(request, *step);
  if (!inputGrad) return inputGrad.error();
  Result<WeightGrads> weightGrads = WeightGrads::make(request, *step);
  if (!weightGrads) return weightGrads.error();
  Result<BiasGrads> biasGrads = BiasGrads::make(request, *step);
  if (!biasGrads) return biasGrads.error();
  BackwardParts parts{GroupReader(step->groups, request.device), std::move(*inputGrad), std::move(*weightGrads),
                      std::move(*biasGrads)};
  return std::unique_ptr<Kernel>(
      std::make_unique<GroupedBackward>(std::move(parts), step->groups.size, request.device));
}

Verdict supports(const KernelQuery& query) { return fitsLibrary(query.graph, query.graph.node(query.members[0])); }

}  // namespace grouped_linear_parts
}  // namespace

KernelDef grouped_linear();

KernelDef grouped_linear() {
  using namespace grouped_linear_parts;
  return {
      .name = "GroupedLinear",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supports,
      .compile = byPhase(compileForward, compileBackward),
  };
}

}  // namespace fuseline::cuda::kernels
