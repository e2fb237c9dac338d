// Kernel "GroupedLinear": y = x W_g^T (+ b_g, or scales b_g) in the rows of each group g, and its gradients.
// The sizes of the groups are data. They stay the same from run to run, like everything that is bound to an executor:
// the host reads them in the first run and prepares GEMMs for every size, and later runs may be recorded. Groups run
// concurrently: few of them fill a GPU alone.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/grouped_programs.h"
#include "core/runtime/grouped_operands.h"
#include "kernels/cuda/elementwise/program_runner.h"
#include "kernels/cuda/gemm/group_products.h"
#include "kernels/cuda/gemm/linear_parts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace fuseline::cuda::kernels {

namespace {

using namespace grouped;

GroupedForm formOf(const CompileRequest& request) { return groupedForm(request.member(0).attributes); }

LinearSize ofAllRows(const CompileRequest& request, const GroupedSize& size) {
  return {.m = size.rows, .n = size.n, .k = size.k, .split = request.member(0).quantizers.splitAccumulators};
}

using GroupedParameters = GroupedOperand<Binding>;

// ---- operands

/// Reads the sizes of the groups. They come from the user, so they are checked.
class GroupReader {
 public:
  static Result<GroupReader> make(const CompileRequest& request, const GroupedSize& size) {
    const Result<Binding> splitSizes = requireOperand(request, kSplitSizes);
    if (!splitSizes) return splitSizes.error();
    return GroupReader(*splitSizes, size, request.device);
  }

  const std::vector<RowGroup>& read(Pointers pointers) {
    if (m_groups.empty()) {
      m_groups = readNow(pointers);
      std::ranges::transform(m_groups, std::back_inserter(m_sizes), &RowGroup::size);
    }
    return m_groups;
  }
  /// The sizes that were read.
  const std::vector<std::int64_t>& sizes() const { return m_sizes; }

 private:
  GroupReader(Binding splitSizes, const GroupedSize& size, const DeviceContext& device)
      : m_splitSizes(std::move(splitSizes)), m_size(size), m_device(&device) {}

  std::vector<RowGroup> readNow(Pointers pointers) const {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(m_size.numGroups));
    m_device->readBack(sizes.data(), m_splitSizes.at(pointers), sizes.size() * sizeof(std::int64_t));
    Result<std::vector<RowGroup>> groups = divideRows(sizes, m_size.rows);
    if (!groups) throw std::runtime_error(groups.error().message);
    return std::move(*groups);
  }

  Binding m_splitSizes;
  GroupedSize m_size;
  const DeviceContext* m_device;
  std::vector<RowGroup> m_groups;  // none: they are not read yet
  std::vector<std::int64_t> m_sizes;
};

// ---- programs

using Memory = std::map<OperandKey, std::byte*>;

/// An elementwise program for the rows of a group at a time. Grid: [rows, N].
class GroupProgram {
 public:
  static Result<GroupProgram> make(const CompileRequest& request, const GroupedSize& size,
                                   const ElementwiseProgram& program, const std::map<OperandKey, DType>& dtypes) {
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
      return elementwiseShape(rows, cols, cols % kVectorWidth == 0, hasColumnSums, {numMultiprocessors});
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
  GroupedSize size;
  GroupReader groups;
  Binding scales, y;
  GroupFactor x, weights;
  GroupedParameters biases;
  GroupProducts products;
  std::optional<GroupProgram> adder;  // of the scaled bias
};

class GroupedForward final : public Kernel {
 public:
  GroupedForward(ForwardParts parts, const DeviceContext& device)
      : m(std::move(parts)), m_turns(turnsOf(device, m.size.numGroups, m.products.workspaceBytes())) {}

  std::size_t workspaceBytes() const override { return m_turns.workspaceBytes() + sumsBytes(); }
  std::vector<std::string> ways() const override { return m.products.ways(); }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::vector<RowGroup>& groups = m.groups.read(pointers);
    m.products.begin(groups, pointers);
    m_turns.run(m.groups.sizes(), workspace, [&](std::size_t i, const Lane& lane) {
      if (groups[i].size > 0) runGroup(i, groups[i], pointers, sumsOf(groups[i], pointers, workspace), lane);
    });
  }

 private:
  /// Where the sums wait for their bias: y itself, if it can hold them.
  bool hasSums() const { return m.adder && m.y.spec.dtype != DType::F32; }
  std::size_t sumsBytes() const {
    return hasSums() ? static_cast<std::size_t>(m.size.rows * m.size.n * sizeBytes(DType::F32)) : 0;
  }

  std::byte* sumsOf(const RowGroup& group, Pointers pointers, std::byte* workspace) const {
    if (!hasSums()) return rowOf(m.y, pointers, group.first);
    return workspace + m_turns.workspaceBytes() + group.first * m.size.n * sizeBytes(DType::F32);
  }

  void runGroup(std::size_t index, const RowGroup& group, Pointers pointers, std::byte* sums, const Lane& lane) {
    std::byte* const bias = m.biases.at(pointers, index);
    m.products.multiply(index, group.size, {.bias = m.adder ? nullptr : bias, .c = sums}, lane);
    if (!m.adder) return;
    const Memory memory = {{kSums, sums},
                           {kBias, bias},
                           {kScales, valueOf(m.scales, pointers, group.first)},
                           {kY, rowOf(m.y, pointers, group.first)}};
    m.adder->run(group.size, memory, lane);
  }

  ForwardParts m;
  LaneTurns m_turns;
};

/// Adds a scaled bias to the GEMMs of `problem`, whose results become float32, so that y is rounded once.
Result<GroupProgram> makeAdder(const CompileRequest& request, const ForwardParts& parts, GemmProblem& problem) {
  const DType y = std::exchange(problem.cType, DType::F32);
  return GroupProgram::make(
      request, parts.size, biasProgram(true),
      {{kSums, DType::F32}, {kBias, parts.biases.dtype()}, {kScales, parts.scales.spec.dtype}, {kY, y}});
}

/// The GEMM adds a bias that is not scaled.
Result<void> addProducts(const CompileRequest& request, const GroupedForm& form, ForwardParts& parts) {
  GemmProblem problem =
      forwardProblem(ofAllRows(request, parts.size), parts.x.any(), parts.weights.any(), parts.y.spec);
  problem.hasBias = form.hasBias() && !form.isBiasScaled;
  if (form.isBiasScaled) {
    Result<GroupProgram> adder = makeAdder(request, parts, problem);
    if (!adder) return adder.error();
    parts.adder = std::move(*adder);
  }
  Result<GroupProducts> products = GroupProducts::make(request, problem, &GemmProblem::m, parts.x, parts.weights);
  if (!products) return products.error();
  parts.products = std::move(*products);
  return {};
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
                     .scales = findOperand(request, kScales),
                     .y = *y,
                     .x = GroupFactor(*x),
                     .weights = {request, form.weights},
                     .biases = {request, OperandKind::Parameter, form.biases}};
  if (Result<void> added = addProducts(request, form, parts); !added) return added.error();
  return std::unique_ptr<Kernel>(std::make_unique<GroupedForward>(std::move(parts), request.device));
}

// ---- backward

/// dx = dy W, if it is requested.
class InputGrad {
 public:
  static Result<InputGrad> make(const CompileRequest& request, const GroupedSize& size) {
    InputGrad made;
    made.m_gradX = findOperand(request, kGradX);
    if (!made.m_gradX) return made;
    const GroupFactor gradY(findOperand(request, kGradY, Direction::Rowwise));
    const GroupFactor weights(request, formOf(request).weights);
    Result<GroupProducts> products = GroupProducts::make(
        request, inputGradProblem(ofAllRows(request, size), gradY.any(), weights.any(), made.m_gradX.spec),
        &GemmProblem::m, gradY, weights);
    if (!products) return products.error();
    made.m_products = std::move(*products);
    return made;
  }

  std::size_t workspaceBytes() const { return m_products.workspaceBytes(); }
  std::vector<std::string> ways() const { return m_products.ways(); }

  void begin(std::span<const RowGroup> groups, Pointers pointers) { m_products.begin(groups, pointers); }
  void run(std::size_t index, const RowGroup& group, Pointers pointers, const Lane& lane) {
    if (!m_gradX || group.size == 0) return;
    m_products.multiply(index, group.size, {.c = rowOf(m_gradX, pointers, group.first)}, lane);
  }

 private:
  Binding m_gradX;
  GroupProducts m_products;
};

/// dW = dy^T x, summed over the rows of a group, if it is requested.
class WeightGrads {
 public:
  static Result<WeightGrads> make(const CompileRequest& request, const GroupedSize& size) {
    WeightGrads made(request);
    if (!made.m_gradients.isPresent()) return made;
    const GroupFactor gradY(findOperand(request, kGradY, Direction::Columnwise));
    const GroupFactor x(findOperand(request, kX));
    Result<GroupProducts> products = GroupProducts::make(
        request, weightGradProblem(ofAllRows(request, size), gradY.any(), x.any(), made.m_gradients.any()),
        &GemmProblem::k, gradY, x);
    if (!products) return products.error();
    made.m_products = std::move(*products);
    return made;
  }

  std::size_t workspaceBytes() const { return m_products.workspaceBytes(); }
  std::vector<std::string> ways() const { return m_products.ways(); }

  void begin(std::span<const RowGroup> groups, Pointers pointers) { m_products.begin(groups, pointers); }
  /// A group without rows has a zero gradient, or leaves the accumulated one unchanged.
  void run(std::size_t index, const RowGroup& group, Pointers pointers, const Lane& lane) {
    std::byte* const gradient = m_gradients.at(pointers, index);
    if (!gradient) return;
    const bool isAdded = m_gradients.any().access == OperandAccess::Accumulate;
    m_products.multiply(index, group.size, {.addend = isAdded ? gradient : nullptr, .c = gradient}, lane);
  }

 private:
  explicit WeightGrads(const CompileRequest& request)
      : m_gradients(request, OperandKind::GradParameter, formOf(request).weights) {}

  GroupedParameters m_gradients;
  GroupProducts m_products;
};

/// The gradients of the biases and of their scales, in one pass over dy.
class BiasGrads {
 public:
  static Result<BiasGrads> make(const CompileRequest& request, const GroupedSize& size, const Binding& gradY) {
    BiasGrads made(request, gradY);
    const bool wantsBias = made.m_gradients.isPresent();
    if (!wantsBias && !made.m_gradScales) return made;
    Result<GroupProgram> program = GroupProgram::make(
        request, size, biasGradProgram(formOf(request).isBiasScaled, wantsBias, bool(made.m_gradScales)),
        {{kGradY, gradY.spec.dtype},
         {kScales, made.m_scales.spec.dtype},
         {kBias, made.m_biases.dtype()},
         {kGradBias, made.m_gradients.dtype()},
         {kGradScales, made.m_gradScales.spec.dtype}});
    if (!program) return program.error();
    made.m_program = std::move(*program);
    return made;
  }

  std::size_t workspaceBytes() const { return m_program ? m_program->workspaceBytes() : 0; }

  void run(std::size_t index, const RowGroup& group, Pointers pointers, const Lane& lane) {
    if (!m_program) return;
    const Memory memory = {{kGradY, rowOf(m_gradY, pointers, group.first)},
                           {kScales, valueOf(m_scales, pointers, group.first)},
                           {kBias, m_biases.at(pointers, index)},
                           {kGradBias, m_gradients.at(pointers, index)},
                           {kGradScales, valueOf(m_gradScales, pointers, group.first)}};
    if (memory.at(kGradBias) || memory.at(kGradScales)) m_program->run(group.size, memory, lane);
  }

 private:
  BiasGrads(const CompileRequest& request, const Binding& gradY)
      : m_gradients(request, OperandKind::GradParameter, formOf(request).biases),
        m_biases(request, OperandKind::Parameter, formOf(request).biases),
        m_scales(findOperand(request, kScales)),
        m_gradScales(findOperand(request, kGradScales)),
        m_gradY(gradY) {}

  GroupedParameters m_gradients, m_biases;
  Binding m_scales, m_gradScales, m_gradY;
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

  std::size_t workspaceBytes() const override { return m_turns.workspaceBytes(); }
  std::vector<std::string> ways() const override {
    const std::vector<std::string> ways = m.inputGrad.ways();
    return ways.empty() ? m.weightGrads.ways() : ways;
  }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::vector<RowGroup>& groups = m.groups.read(pointers);
    m.inputGrad.begin(groups, pointers);
    m.weightGrads.begin(groups, pointers);
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
  const Result<Binding> gradY = requireOperand(request, kGradY);
  if (!gradY) return gradY.error();
  const GroupedSize size = groupedSize(request, gradY->spec);
  Result<GroupReader> groups = GroupReader::make(request, size);
  if (!groups) return groups.error();
  Result<InputGrad> inputGrad = InputGrad::make(request, size);
  if (!inputGrad) return inputGrad.error();
  Result<WeightGrads> weightGrads = WeightGrads::make(request, size);
  if (!weightGrads) return weightGrads.error();
  Result<BiasGrads> biasGrads = BiasGrads::make(request, size, findPlainOperand(request, kGradY));
  if (!biasGrads) return biasGrads.error();
  BackwardParts parts{std::move(*groups), std::move(*inputGrad), std::move(*weightGrads), std::move(*biasGrads)};
  return std::unique_ptr<Kernel>(std::make_unique<GroupedBackward>(std::move(parts), size, request.device));
}

Verdict supports(const KernelQuery& query) { return fitsLibrary(query.graph, query.graph.node(query.members[0])); }

}  // namespace

KernelDef grouped_linear();

KernelDef grouped_linear() {
  return {
      .name = "GroupedLinear",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supports,
      .compile =
          [](const CompileRequest& request) {
            return request.step.phase == Phase::Forward ? compileForward(request) : compileBackward(request);
          },
  };
}

}  // namespace fuseline::cuda::kernels
