// Decides which parts are views, one step that splits or joins columns after the other.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/column_views.h"

#include "core/fusion/split_rotary.h"
#include "core/plan/column_operands.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace fuseline {

namespace {

/// Tensors begin at multiples of this many bytes, from which kernels choose how wide they load.
constexpr std::int64_t kAlignmentBytes = 64;

std::int64_t alignmentOf(std::int64_t width, std::int64_t elementBytes) {
  return std::gcd(kAlignmentBytes, width * elementBytes);
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
  ColumnViews(const Graph& graph, Plan& plan, std::vector<int>& viewOf, bool joinsInPlace)
      : m_graph(graph),
        m_plan(plan),
        m_viewOf(viewOf),
        m_joinsInPlace(joinsInPlace),
        m_uses(plan.tensors.size()),
        m_members(plan.tensors.size()) {
    for (int tensor = 0; tensor < static_cast<int>(plan.tensors.size()); ++tensor) {
      m_ownRoot.push_back(root(tensor));
      m_members[toIndex(root(tensor))].push_back(tensor);
    }
    for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step)
      for (const StepOperand& operand : plan.steps[toIndex(step)].operands)
        m_uses[toIndex(root(operand.tensor))].push_back({step, &operand});
  }

  void run() {
    for (int step = 0; step < static_cast<int>(m_plan.steps.size()); ++step) {
      const ColumnStep columns = columnStep(m_graph, m_plan.steps[toIndex(step)]);
      if (columns.parts.empty() || (m_joinsInPlace && joinInPlace(step, columns))) continue;
      showParts(step, columns);
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
  /// Before any part is a view.
  int ownRoot(int tensor) const { return m_ownRoot[toIndex(tensor)]; }
  bool isView(int tensor) const { return static_cast<bool>(m_plan.tensors[toIndex(tensor)].columns); }

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
    return areFree(part) && std::ranges::all_of(m_uses[toIndex(part)], [&](const TensorUse& use) {
             return use.step == step ? use.operand->key == columns.key : isStrided(use, columns, all);
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

  bool areFree(int root) const {
    return std::ranges::all_of(m_members[toIndex(root)], [&](int tensor) { return isFree(tensor); });
  }

  bool isStrided(const TensorUse& use, const Part& columns, const ColumnStep& all) const {
    return (isRead(use) || all.joins) && isPlain(use) && takes(use, columns.width);
  }

  bool isRead(const TensorUse& use) const { return use.operand->access == OperandAccess::Read; }
  bool isPlain(const TensorUse& use) const {
    const StepOperand& operand = *use.operand;
    return operand.access != OperandAccess::Accumulate && !operand.direction &&
           !m_plan.steps[toIndex(use.step)].workOn(operand.key);
  }
  bool takes(const TensorUse& use, std::int64_t width) const {
    return takesColumns(m_graph, m_plan.steps[toIndex(use.step)], use.operand->key, width);
  }

  // ---- columns that are joined again

  /// A part that is joined: columns of a tensor, or a rotary embedding of them that may work in place.
  struct JoinedPart {
    int shown = -1;    // root of the part that is a view
    int rotated = -1;  // root of its rotation; -1: it is not rotated
    int step = -1;     // that rotates it
  };

  /// Where the whole would have all columns of one tensor in their order, it is that tensor.
  bool joinInPlace(int step, const ColumnStep& columns) {
    const StepOperand* const whole = m_plan.steps[toIndex(step)].find(columns.whole);
    if (!columns.joins || !columns.isCopyOnly || !whole || whole->access != OperandAccess::Write) return false;
    std::vector<JoinedPart> parts;
    for (const Part& part : columns.parts) {
      const std::optional<JoinedPart> joined = joinedPart(step, part, columns.width);
      if (!joined) return false;
      parts.push_back(*joined);
    }
    const int source = m_viewOf[toIndex(parts.front().shown)];
    if (!mayBecome(root(whole->tensor), source, step, parts)) return false;
    become(root(whole->tensor), source, parts);
    m_done.emplace_back(step, columns);
    return true;
  }

  std::optional<JoinedPart> joinedPart(int step, const Part& part, std::int64_t wholeWidth) const {
    const StepOperand* const operand = m_plan.steps[toIndex(step)].find(part.key);
    if (!operand) return std::nullopt;
    JoinedPart joined{.shown = ownRoot(operand->tensor)};
    if (!isView(joined.shown)) joined = rotatedPart(step, joined.shown);
    if (joined.shown < 0) return std::nullopt;
    const ColumnView& view = m_plan.tensors[toIndex(joined.shown)].columns;
    const bool isThere = view.firstElement == part.first && view.width == part.width && view.rowStride == wholeWidth;
    return isThere ? std::optional(joined) : std::nullopt;
  }

  /// The part whose rotation this step reads; nothing else may read the rotation.
  JoinedPart rotatedPart(int step, int rotated) const {
    JoinedPart joined{.rotated = rotated};
    const bool hasOtherUses = m_uses[toIndex(rotated)].size() != 2;
    if (hasOtherUses || !areFree(rotated) || m_isWhole.contains(rotated)) return {};
    const TensorUse& use = m_uses[toIndex(rotated)].front();
    const Step& rotary = m_plan.steps[toIndex(use.step)];
    if (rotary.kernel != "RotaryPositionEmbedding" || use.step >= step || isRead(use) || !isPlain(use)) return {};
    const bool isForward = rotary.phase == Phase::Forward;
    const StepOperand* const input = rotary.find({0, isForward ? OperandKind::Input : OperandKind::GradOutput, 0});
    joined.shown = input ? ownRoot(input->tensor) : -1;
    joined.step = use.step;
    if (joined.shown < 0 || !isView(joined.shown)) return {};
    return takes(use, m_plan.tensors[toIndex(joined.shown)].columns.width) ? joined : JoinedPart();
  }

  bool mayBecome(int whole, int source, int step, const std::vector<JoinedPart>& parts) const {
    const auto isOfSource = [&](const JoinedPart& part) { return m_viewOf[toIndex(part.shown)] == source; };
    if (whole == source || m_isWhole.contains(whole) || !std::ranges::all_of(parts, isOfSource)) return false;
    if (m_plan.tensors[toIndex(whole)].spec.bytes() != m_plan.tensors[toIndex(source)].spec.bytes()) return false;
    const auto isOwn = [&](int tensor) { return isInside(tensor) && !m_plan.tensors[toIndex(tensor)].isKept; };
    return areFree(whole) && std::ranges::all_of(m_members[toIndex(source)], isOwn) &&
           !isWrittenByOthers(whole, step, {.joins = true}) && !isReadUnrotated(source, parts);
  }

  /// Does a step need the columns as they were before they were rotated in place?
  bool isReadUnrotated(int source, const std::vector<JoinedPart>& parts) const {
    int first = static_cast<int>(m_plan.steps.size());
    for (const JoinedPart& part : parts)
      if (part.rotated >= 0) first = std::min(first, part.step);
    const auto isPlainPart = [&](int tensor) {
      return std::ranges::any_of(parts, [&](const JoinedPart& p) { return p.shown == tensor && p.rotated < 0; });
    };
    for (int tensor = 0; tensor < static_cast<int>(m_viewOf.size()); ++tensor) {
      if (root(tensor) != source || isPlainPart(tensor)) continue;
      const auto own = std::ranges::find(parts, tensor, &JoinedPart::shown);
      const int last = own != parts.end() ? own->step : first;
      if (std::ranges::any_of(m_uses[toIndex(tensor)], [&](const TensorUse& use) { return use.step > last; }))
        return true;
    }
    return false;
  }

  void become(int whole, int source, const std::vector<JoinedPart>& parts) {
    for (const JoinedPart& part : parts) {
      if (part.rotated < 0) continue;
      const ColumnView view = m_plan.tensors[toIndex(part.shown)].columns;
      for (const int tensor : m_members[toIndex(part.rotated)]) m_plan.tensors[toIndex(tensor)].columns = view;
      m_viewOf[toIndex(part.rotated)] = source;
    }
    m_viewOf[toIndex(whole)] = source;
    std::ranges::copy(m_uses[toIndex(whole)], std::back_inserter(m_uses[toIndex(source)]));
    std::ranges::copy(m_members[toIndex(whole)], std::back_inserter(m_members[toIndex(source)]));
  }

  void show(int part, int whole, const Part& columns, std::int64_t rowStride) {
    for (const int tensor : m_members[toIndex(part)])
      m_plan.tensors[toIndex(tensor)].columns = {
          .width = columns.width, .rowStride = rowStride, .firstElement = columns.first};
    m_viewOf[toIndex(part)] = whole;
    m_isWhole.insert(whole);
  }

  /// Is the part already where the whole is?
  bool isViewAt(const Step& step, const OperandKey& key, const OperandKey& whole) const {
    const StepOperand* const operand = step.find(key);
    return operand && isView(operand->tensor) && root(operand->tensor) == root(step.find(whole)->tensor);
  }

  /// The step copies and changes the other columns only. One without any is a view.
  void finish(Step& step, const ColumnStep& columns) {
    const auto isIdle = [&](const Part& part) {
      const bool isUnread = !columns.joins && !step.find(part.key);
      return isUnread || (!part.isChanged && isViewAt(step, part.key, columns.whole));
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
      const bool isView = isViewAt(step, part.key, columns.whole);
      if (isView && part.isChanged) continue;
      const bool isUnread = !columns.joins && !step.find(part.key);
      if (isView || isUnread) wholeBytes -= columnBytes * part.width;
      if (isView && !part.isSummed) partBytes -= columnBytes * part.width;
    }
  }

  const Graph& m_graph;
  Plan& m_plan;
  std::vector<int>& m_viewOf;
  bool m_joinsInPlace;
  // By root before any part is a view.
  std::vector<int> m_ownRoot;  // by tensor
  std::vector<std::vector<TensorUse>> m_uses;
  std::vector<std::vector<int>> m_members;
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

std::int64_t columnAlignment(const TensorSpec& columns) {
  return alignmentOf(columns.cols(), sizeBytes(columns.dtype));
}

void showColumns(const Graph& graph, Plan& plan, std::vector<int>& viewOf, bool joinsInPlace) {
  ColumnViews(graph, plan, viewOf, joinsInPlace).run();
}

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
