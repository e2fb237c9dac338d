// Decides which parts are views, one step that splits or joins columns after the other.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/column_views.h"

#include "core/fusion/split_rotary.h"
#include "core/ops/attention_form.h"
#include "core/ops/rotary_form.h"
#include "core/quant/attention_quantizers.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

namespace fuseline {

namespace {

/// Tensors begin at multiples of this many bytes, from which kernels choose how wide they load.
constexpr std::int64_t kAlignmentBytes = 64;

std::int64_t alignmentOf(std::int64_t width, std::int64_t elementBytes) {
  return std::gcd(kAlignmentBytes, width * elementBytes);
}

bool isGradientOrInput(const OperandKey& key) {
  return key.kind == OperandKind::Input || key.kind == OperandKind::GradInput;
}

/// Quantized values, and what takes their place, are contiguous.
std::int64_t linearWidth(const Graph& graph, NodeId linear, const OperandKey& key) {
  if (graph.node(linear).quantizers.any() || key.slot != 0) return 0;
  switch (key.kind) {
    case OperandKind::Input:
    case OperandKind::GradInput: return graph.spec(linear, OperandKind::Input, 0).cols();
    case OperandKind::Output:
    case OperandKind::GradOutput: return graph.spec(linear, OperandKind::Output, 0).cols();
    default: return 0;
  }
}

/// The columns that a norm normalizes together. One that quantizes reads its input in tiles.
std::int64_t normWidth(const Graph& graph, const Step& step) {
  if (!step.copies.empty()) return 0;
  const Node& norm = graph.node(step.nodes.front());
  return norm.parameters.empty() ? graph.inputSpecs(step.nodes.front()).front().cols()
                                 : norm.parameters.front().numElements();
}

/// Quantized values are contiguous, and so are their sources; gradients may be columns.
std::int64_t attentionWidth(const Node& attention, const OperandKey& key) {
  if (isQuantizedAttention(attention) && key.kind == OperandKind::Input) return 0;
  const AttentionForm form = attentionForm(attention.attributes);
  switch (key.slot) {
    case AttentionForm::kQuery: return form.heads * form.qkChannels;
    case AttentionForm::kKey: return form.groups * form.qkChannels;
    case AttentionForm::kValue: return form.groups * form.vChannels;
    default: return 0;
  }
}

std::int64_t rotaryWidth(const Graph& graph, NodeId rotary) {
  const Result<TokenLayout> layout =
      rotaryLayout(rotaryForm(graph.node(rotary).attributes), graph.inputSpecs(rotary).front().shape);
  return layout ? layout->heads * layout->channels : 0;
}

/// Columns [first, first + width) of the whole.
struct Part {
  OperandKey key;
  std::int64_t first = 0;
  std::int64_t width = 0;
  bool isChanged = false;  // computed, in the whole's own memory where it is a view
  bool isSummed = false;   // read where it stands
};

/// A step that copies between a tensor and groups of its columns.
struct ColumnStep {
  OperandKey whole;
  std::vector<Part> parts;
  std::int64_t width = 0;  // of the whole
  bool joins = false;      // writes the whole
  bool isCopyOnly = true;

  void add(OperandKey key, std::int64_t partWidth) {
    parts.push_back({key, width, partWidth});
    width += partWidth;
  }
};

ColumnStep splitStep(const Graph& graph, const Step& step) {
  const bool isForward = step.phase == Phase::Forward;
  ColumnStep found{.whole = {0, isForward ? OperandKind::Input : OperandKind::GradInput, 0}, .joins = !isForward};
  int slot = 0;
  for (const ValueId output : graph.node(step.nodes.front()).outputs)
    found.add({0, isForward ? OperandKind::Output : OperandKind::GradOutput, slot++}, graph.value(output).spec.cols());
  return found;
}

ColumnStep concatStep(const Graph& graph, const Step& step) {
  const bool isForward = step.phase == Phase::Forward;
  ColumnStep found{.whole = {0, isForward ? OperandKind::Output : OperandKind::GradOutput, 0}, .joins = isForward};
  int slot = 0;
  for (const TensorSpec& input : graph.inputSpecs(step.nodes.front()))
    found.add({0, isForward ? OperandKind::Input : OperandKind::GradInput, slot++}, input.cols());
  return found;
}

/// Rotations change columns, and so does a bias in forward; its gradient is a sum over all of them.
ColumnStep splitRotaryStep(const Graph& graph, const Step& step) {
  const bool isForward = step.phase == Phase::Forward;
  const SplitRotary split = splitRotary(graph, step.nodes);
  ColumnStep found{.whole = {0, isForward ? OperandKind::Input : OperandKind::GradInput, 0},
                   .width = split.width,
                   .joins = !isForward,
                   .isCopyOnly = false};
  for (const SplitRotary::Part& part : split.parts)
    found.parts.push_back({.key = isForward ? part.output : part.gradient,
                           .first = part.first,
                           .width = part.width,
                           .isChanged = part.rotary >= 0 || (isForward && split.hasBias()),
                           .isSummed = !isForward && split.hasBias()});
  return found;
}

ColumnStep columnStep(const Graph& graph, const Step& step) {
  if (!step.copies.empty()) return {};  // encoded values are contiguous
  if (step.kernel == "Split") return splitStep(graph, step);
  if (step.kernel == "Concat") return concatStep(graph, step);
  if (step.kernel == "split_rotary") return splitRotaryStep(graph, step);
  return {};
}

class ColumnViews {
 public:
  ColumnViews(const Graph& graph, Plan& plan, std::vector<int>& viewOf)
      : m_graph(graph), m_plan(plan), m_viewOf(viewOf), m_uses(plan.tensors.size()), m_members(plan.tensors.size()) {
    for (int tensor = 0; tensor < static_cast<int>(plan.tensors.size()); ++tensor)
      m_members[toIndex(root(tensor))].push_back(tensor);
    for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step)
      for (const StepOperand& operand : plan.steps[toIndex(step)].operands)
        m_uses[toIndex(root(operand.tensor))].push_back({step, &operand});
  }

  void run() {
    for (int step = 0; step < static_cast<int>(m_plan.steps.size()); ++step) {
      const ColumnStep columns = columnStep(m_graph, m_plan.steps[toIndex(step)]);
      if (!columns.parts.empty()) showParts(step, columns);
    }
    for (const auto& [step, columns] : m_done) finish(m_plan.steps[toIndex(step)], columns);
  }

 private:
  struct TensorUse {
    int step = 0;
    const StepOperand* operand = nullptr;
  };
  struct ShownPart {
    int root = -1;
    const Part* columns = nullptr;
  };

  int root(int tensor) const {
    while (m_viewOf[toIndex(tensor)] != tensor) tensor = m_viewOf[toIndex(tensor)];
    return tensor;
  }

  void showParts(int step, const ColumnStep& columns) {
    const StepOperand* const whole = m_plan.steps[toIndex(step)].find(columns.whole);
    if (!whole || m_plan.tensors[toIndex(whole->tensor)].columns) return;
    const int wholeRoot = root(whole->tensor);
    if (whole->access == OperandAccess::Accumulate || isWrittenByOthers(wholeRoot, step, columns)) return;
    const std::vector<ShownPart> shown = partsToShow(step, wholeRoot, columns);
    for (const ShownPart& part : shown) show(part.root, wholeRoot, *part.columns, columns.width);
    if (!shown.empty()) m_done.emplace_back(step, columns);
  }

  /// In forward all of them, or those that backward does not read: a view of a whole that backward does not need
  /// otherwise would keep more memory than a copy.
  std::vector<ShownPart> partsToShow(int step, int whole, const ColumnStep& columns) const {
    std::vector<ShownPart> parts;
    std::set<int> roots;
    for (const Part& part : columns.parts) {
      const StepOperand* const operand = m_plan.steps[toIndex(step)].find(part.key);
      if (operand && roots.insert(root(operand->tensor)).second &&
          mayShow(step, root(operand->tensor), whole, part, columns))
        parts.push_back({root(operand->tensor), &part});
    }
    const bool isForward = m_plan.steps[toIndex(step)].phase == Phase::Forward;
    std::int64_t kept = 0;
    for (const ShownPart& part : parts) kept += isUsedInBackward(part.root) ? part.columns->width : 0;
    if (isForward && kept < columns.width && isOwnMemory(whole) && !isUsedInBackward(whole))
      std::erase_if(parts, [&](const ShownPart& part) { return isUsedInBackward(part.root); });
    return parts;
  }

  bool isUsedInBackward(int tensor) const {
    return std::ranges::any_of(m_uses[toIndex(tensor)], [&](const TensorUse& use) {
      return m_plan.steps[toIndex(use.step)].phase == Phase::Backward;
    });
  }
  bool isOwnMemory(int tensor) const { return m_plan.tensors[toIndex(tensor)].role == TensorRole::Intermediate; }

  /// A whole that is joined must have no other contents; one that is split must keep its own.
  bool isWrittenByOthers(int whole, int step, const ColumnStep& columns) const {
    return std::ranges::any_of(m_uses[toIndex(whole)], [&](const TensorUse& use) {
      return use.operand->access != OperandAccess::Read && use.step != step && (columns.joins || use.step > step);
    });
  }

  bool mayShow(int step, int part, int whole, const Part& columns, const ColumnStep& all) const {
    if (part == whole || m_isWhole.contains(part) || columns.width == 0) return false;
    if (!isAligned(part, columns, all)) return false;
    if (columns.isChanged && !mayChange(step, all.joins ? part : whole)) return false;
    if (columns.isChanged && !all.joins && m_isWhole.contains(whole)) return false;
    return std::ranges::all_of(m_members[toIndex(part)], [&](int tensor) { return isFree(tensor); }) &&
           std::ranges::all_of(m_uses[toIndex(part)], [&](const TensorUse& use) {
             return use.step == step ? use.operand->key == columns.key : takesColumns(use, columns, all);
           });
  }

  /// Rows of the view begin at multiples of whatever rows of a contiguous tensor would begin at.
  bool isAligned(int part, const Part& columns, const ColumnStep& all) const {
    const std::int64_t bytes = sizeBytes(m_plan.tensors[toIndex(part)].spec.dtype);
    const std::int64_t alignment = alignmentOf(columns.width, bytes);
    return columns.first * bytes % alignment == 0 && all.width * bytes % alignment == 0;
  }

  /// Nobody reads the tensor after the step that changes it in place, and it is not the caller's.
  bool mayChange(int step, int tensor) const {
    return std::ranges::all_of(m_members[toIndex(tensor)], [&](int member) { return isInside(member); }) &&
           std::ranges::none_of(m_uses[toIndex(tensor)], [&](const TensorUse& use) { return use.step > step; });
  }

  bool isInside(int tensor) const {
    const TensorRole role = m_plan.tensors[toIndex(tensor)].role;
    return role == TensorRole::Intermediate || role == TensorRole::Gradient;
  }

  bool isFree(int tensor) const {
    const PlanTensor& planned = m_plan.tensors[toIndex(tensor)];
    return isInside(tensor) && !planned.columns && !planned.isKept && !planned.spec.quantized;
  }

  bool takesColumns(const TensorUse& use, const Part& columns, const ColumnStep& all) const {
    const Step& step = m_plan.steps[toIndex(use.step)];
    const StepOperand& operand = *use.operand;
    const bool isPlain = operand.access != OperandAccess::Accumulate && !operand.direction && !step.workOn(operand.key);
    const bool isRead = operand.access == OperandAccess::Read;
    return isPlain && (isRead || all.joins) && columnWidth(m_graph, step, operand.key) == columns.width;
  }

  void show(int part, int whole, const Part& columns, std::int64_t rowStride) {
    for (const int tensor : m_members[toIndex(part)])
      m_plan.tensors[toIndex(tensor)].columns = {
          .width = columns.width, .rowStride = rowStride, .firstElement = columns.first};
    m_viewOf[toIndex(part)] = whole;
    m_isWhole.insert(whole);
  }

  bool isViewAt(const Step& step, const OperandKey& key) const {
    const StepOperand* const operand = step.find(key);
    return operand && m_plan.tensors[toIndex(operand->tensor)].columns;
  }

  /// The step copies and changes the other columns only. One without any is a view.
  void finish(Step& step, const ColumnStep& columns) {
    const auto isIdle = [&](const Part& part) {
      const bool isUnread = !columns.joins && !step.find(part.key);
      return isUnread || (!part.isChanged && isViewAt(step, part.key));
    };
    step.isView = columns.isCopyOnly && std::ranges::all_of(columns.parts, isIdle);
    countBytes(step, columns);
    std::erase_if(step.operands, [&](const StepOperand& operand) {
      const auto part = std::ranges::find(columns.parts, operand.key, &Part::key);
      return step.isView || (!columns.joins && part != columns.parts.end() && isIdle(*part));
    });
  }

  void countBytes(Step& step, const ColumnStep& columns) const {
    const StepOperand& whole = *step.find(columns.whole);
    const std::int64_t columnBytes = m_plan.tensors[toIndex(whole.tensor)].spec.bytes() / columns.width;
    std::int64_t& wholeBytes = columns.joins ? step.bytesWritten : step.bytesRead;
    std::int64_t& partBytes = columns.joins ? step.bytesRead : step.bytesWritten;
    for (const Part& part : columns.parts) {
      const bool isView = isViewAt(step, part.key);
      if (isView && part.isChanged) continue;
      const bool isUnread = !columns.joins && !step.find(part.key);
      if (isView || isUnread) wholeBytes -= columnBytes * part.width;
      if (isView && !part.isSummed) partBytes -= columnBytes * part.width;
    }
  }

  const Graph& m_graph;
  Plan& m_plan;
  std::vector<int>& m_viewOf;
  std::vector<std::vector<TensorUse>> m_uses;  // by root
  std::vector<std::vector<int>> m_members;     // by root, before any part is a view
  std::set<int> m_isWhole;
  std::vector<std::pair<int, ColumnStep>> m_done;  // steps with parts that are views
};

/// f(offset in the columns, offset in the contiguous tensor, bytes) for each row.
template <class Function>
void forEachRow(const PlanTensor& tensor, const Function& f) {
  const std::int64_t bytes = sizeBytes(tensor.spec.dtype);
  const std::int64_t rows = tensor.spec.numElements() / tensor.columns.width;
  for (std::int64_t row = 0; row < rows; ++row)
    f(row * tensor.columns.rowStride * bytes, row * tensor.columns.width * bytes,
      static_cast<std::size_t>(tensor.columns.width * bytes));
}

}  // namespace

std::int64_t columnWidth(const Graph& graph, const Step& step, const OperandKey& key) {
  if (key.member != 0) return 0;
  if (step.kernel == "BasicLinear") return linearWidth(graph, step.nodes.front(), key);
  if (!isGradientOrInput(key)) return 0;
  if (step.kernel == "linear_epilogue" || step.kernel == "linear_backward_bias")
    return linearWidth(graph, step.nodes.front(), key);
  if (step.kernel == "DotProductAttention") return attentionWidth(graph.node(step.nodes.front()), key);
  if (key.slot != 0) return 0;
  if (step.kernel == "RMSNorm" || step.kernel == "LayerNorm" || step.kernel == "L2Normalization")
    return normWidth(graph, step);
  if (step.kernel == "RotaryPositionEmbedding" || step.kernel == "norm_rotary")
    return rotaryWidth(graph, step.nodes.back());
  return 0;
}

std::int64_t columnAlignment(const TensorSpec& columns) {
  return alignmentOf(columns.cols(), sizeBytes(columns.dtype));
}

void showColumns(const Graph& graph, Plan& plan, std::vector<int>& viewOf) { ColumnViews(graph, plan, viewOf).run(); }

std::int64_t firstByteOf(const PlanTensor& tensor) {
  const auto& form = tensor.spec.quantized;
  return form ? form->window.first * codeBytes(form->format, tensor.spec.cols())
              : tensor.columns.firstElement * sizeBytes(tensor.spec.dtype);
}

std::size_t columnBytes(const PlanTensor& tensor) {
  if (!tensor.columns || tensor.spec.numElements() == 0) return 0;
  const std::int64_t rows = tensor.spec.numElements() / tensor.columns.width;
  const std::int64_t elements = (rows - 1) * tensor.columns.rowStride + tensor.columns.width;
  return static_cast<std::size_t>(elements * sizeBytes(tensor.spec.dtype));
}

void gatherColumns(const PlanTensor& tensor, const std::byte* columns, std::span<std::byte> contiguous) {
  forEachRow(tensor, [&](std::int64_t from, std::int64_t to, std::size_t bytes) {
    std::memcpy(contiguous.data() + to, columns + from, bytes);
  });
}

void scatterColumns(const PlanTensor& tensor, std::span<const std::byte> contiguous, std::byte* columns) {
  forEachRow(tensor, [&](std::int64_t to, std::int64_t from, std::size_t bytes) {
    std::memcpy(columns + to, contiguous.data() + from, bytes);
  });
}

}  // namespace fuseline
