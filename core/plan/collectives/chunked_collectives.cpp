// Finds a gather before a GEMM, or a scatter after it, and cuts both.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collectives/chunked_collectives.h"

#include "core/plan/collectives/overlapped_collectives.h"
#include "core/plan/column_views.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// A collective of some bytes, and a GEMM, between H100 GPUs over NVLink 4: NCCL's latency, published bandwidth, and
/// the speed of large bf16 GEMMs.
constexpr double kLatencyNs = 12e3;
constexpr double kBytesPerNs = 370.0;
constexpr double kFlopsPerNs = 650e3;
constexpr std::array kTriedChunks = {1, 2, 4, 8};

double timeInChunks(int chunks, double bytes, double flops) {
  const double sentNs = kLatencyNs + bytes / chunks / kBytesPerNs;
  const double gemmNs = flops / chunks / kFlopsPerNs;
  return sentNs + (chunks - 1) * std::max(sentNs, gemmNs) + gemmNs;
}

int bestChunks(double bytes, double flops) {
  return std::ranges::min(kTriedChunks, {}, [&](int chunks) { return timeInChunks(chunks, bytes, flops); });
}

/// These have the rows of the GEMM; parameters have none of them.
bool hasRows(OperandKind kind) { return kind != OperandKind::Parameter && kind != OperandKind::GradParameter; }

bool hasPlainRows(const PlanTensor& tensor) { return !tensor.columns && !tensor.spec.quantized; }

class Chunker {
 public:
  Chunker(const Graph& graph, Plan& plan, std::vector<int>& viewOf, int chunks)
      : m_graph(graph), m_plan(plan), m_viewOf(viewOf), m_chunks(chunks) {}

  void cut() {
    const std::vector<Step> steps = std::exchange(m_plan.steps, {});
    for (std::size_t index = 0; index < steps.size(); ++index) {
      const std::size_t next = nextLaunched(steps, index);
      const bool isPair = next < steps.size() && steps[index].isLaunched();
      if (!isPair || !(cutGather(steps[index], steps[next]) || cutScatter(steps, steps[index], steps[next]))) {
        m_plan.steps.push_back(steps[index]);
        continue;
      }
      std::copy(steps.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                steps.begin() + static_cast<std::ptrdiff_t>(next), std::back_inserter(m_plan.steps));
      index = next;
    }
  }

 private:
  /// Rows: of the GEMM and of one rank, and of a part of the latter.
  struct Cut {
    std::int64_t rows;
    std::int64_t ofRank;
    std::int64_t ofPart;
    std::int64_t ranks() const { return rows / ofRank; }
    std::int64_t parts() const { return ofPart == 0 ? 1 : ofRank / ofPart; }
  };

  static std::size_t nextLaunched(const std::vector<Step>& steps, std::size_t index) {
    do ++index;
    while (index < steps.size() && !steps[index].isLaunched());
    return index;
  }

  PlanTensor& tensor(int index) { return m_plan.tensors[toIndex(index)]; }
  const TensorSpec& spec(int index) const { return m_plan.tensors[toIndex(index)].spec; }
  int root(int index) const {
    while (m_viewOf[toIndex(index)] != index) index = m_viewOf[toIndex(index)];
    return index;
  }

  static bool isWhole(const Step& step, CollectiveKind kind) {
    return step.collective && step.collective->kind == kind && step.collective->half == CollectiveWork::Half::Whole &&
           step.operands.size() == 2;
  }

  /// Is it a GEMM whose rows can be computed in pieces, and are all of its tensors ones of which a piece is rows?
  bool isCuttable(const Step& gemm, std::int64_t rows) const {
    if ((gemm.kernel != "BasicLinear" && gemm.kernel != "linear_epilogue") || !gemm.copies.empty()) return false;
    const bool isRandom =
        std::ranges::any_of(gemm.nodes, [&](NodeId id) { return m_graph.node(id).operation->name == "Dropout"; });
    return !isRandom && std::ranges::all_of(gemm.operands, [&](const StepOperand& operand) {
      const PlanTensor& whole = m_plan.tensors[toIndex(operand.tensor)];
      if (operand.key.kind == OperandKind::GradParameter || whole.spec.quantized) return false;
      return !hasRows(operand.key.kind) || (hasPlainRows(whole) && whole.spec.rows() == rows);
    });
  }

  /// ofRank: rows. bytes: of the whole tensor that is sent. One part: it is not worth it, or rows do not divide.
  Cut cutOf(const Step& gemm, std::int64_t rows, std::int64_t ofRank, std::int64_t bytes) const {
    std::int64_t parts =
        m_chunks > 0 ? m_chunks : bestChunks(static_cast<double>(bytes), static_cast<double>(gemm.flops));
    while (parts > 1 && !isDivided(gemm, ofRank, parts)) --parts;
    return {.rows = rows, .ofRank = ofRank, .ofPart = ofRank / parts};
  }

  /// Does each piece begin where kernels may read and write?
  bool isDivided(const Step& gemm, std::int64_t ofRank, std::int64_t parts) const {
    return ofRank > 0 && ofRank % parts == 0 && std::ranges::all_of(gemm.operands, [&](const StepOperand& operand) {
             const TensorSpec& whole = spec(operand.tensor);
             const std::int64_t bytes = ofRank / parts * whole.cols() * sizeBytes(whole.dtype);
             return !hasRows(operand.key.kind) || bytes % columnAlignment(whole) == 0;
           });
  }

  int rowsOf(int source, std::int64_t first, std::int64_t count) {
    PlanTensor rows = tensor(source);
    rows.name = fmt::format("{}[{}:{}]", rows.name, first, first + count);
    const std::int64_t cols = rows.spec.cols();
    rows.spec.shape = {count, cols};
    rows.columns.firstElement += first * cols;
    const bool isInside = rows.role == TensorRole::Gradient || rows.role == TensorRole::Reloaded;
    rows.role = isInside ? rows.role : TensorRole::Intermediate;
    m_plan.tensors.push_back(std::move(rows));
    m_viewOf.push_back(root(source));
    return static_cast<int>(m_plan.tensors.size()) - 1;
  }

  int addTensor(int like, std::string name, std::int64_t rows) {
    PlanTensor added = tensor(like);
    added.name = std::move(name);
    added.spec.shape = {rows, added.spec.cols()};
    m_plan.tensors.push_back(std::move(added));
    m_viewOf.push_back(static_cast<int>(m_plan.tensors.size()) - 1);
    return m_viewOf.back();
  }

  /// elsewhere: by operand, the rows that replace those of the whole.
  Step piece(const Step& gemm, const Cut& cut, std::int64_t part, std::int64_t rank,
             const std::map<int, int>& elsewhere = {}) {
    Step made = gemm;
    made.name = fmt::format("{} [{}/{}]", gemm.name, part * cut.ranks() + rank + 1, cut.parts() * cut.ranks());
    made.flops = gemm.flops / cut.rows * cut.ofPart;
    made.bytesRead = made.bytesWritten = 0;
    made.note.clear();  // of an op without overlap
    std::map<int, int> rows;
    for (StepOperand& operand : made.operands) {
      const int whole = operand.tensor;
      if (const auto other = elsewhere.find(whole); other != elsewhere.end()) {
        operand.tensor = other->second;
      } else if (hasRows(operand.key.kind)) {
        const auto [known, isNew] = rows.try_emplace(whole, -1);
        if (isNew) known->second = rowsOf(whole, rank * cut.ofRank + part * cut.ofPart, cut.ofPart);
        operand.tensor = known->second;
      }
      if (operand.access != OperandAccess::Write) made.bytesRead += spec(operand.tensor).bytes();
      if (operand.access != OperandAccess::Read) made.bytesWritten += spec(operand.tensor).bytes();
    }
    return made;
  }

  static Step partOf(const Step& collective, const Cut& cut, std::int64_t part) {
    Step made = collective;
    made.name = fmt::format("{} [{}/{}]", collective.name, part + 1, cut.parts());
    made.bytesRead /= cut.parts();
    made.bytesWritten /= cut.parts();
    return made;
  }

  /// Sends beside `steps`.
  void addBeside(Step sent, std::vector<Step> steps) {
    sent.collective->half = CollectiveWork::Half::Begin;
    Step wait = waitFor(sent);
    m_plan.steps.push_back(std::move(sent));
    std::ranges::move(steps, std::back_inserter(m_plan.steps));
    m_plan.steps.push_back(std::move(wait));
  }

  bool cutGather(const Step& gather, const Step& gemm) {
    if (!isWhole(gather, CollectiveKind::AllGather)) return false;
    const int from = gather.operands[0].tensor;
    const int to = gather.operands[1].tensor;
    const bool reads = std::ranges::any_of(
        gemm.operands, [&](const StepOperand& operand) { return root(operand.tensor) == root(to); });
    if (!reads || !hasPlainRows(tensor(from)) || !isCuttable(gemm, spec(to).rows())) return false;
    const Cut cut = cutOf(gemm, spec(to).rows(), spec(from).rows(), spec(to).bytes());
    if (cut.parts() == 1) return false;
    m_plan.steps.push_back(partOfGather(gather, cut, 0));
    for (std::int64_t part = 1; part < cut.parts(); ++part)
      addBeside(partOfGather(gather, cut, part), pieces(gemm, cut, part - 1));
    std::ranges::move(pieces(gemm, cut, cut.parts() - 1), std::back_inserter(m_plan.steps));
    return true;
  }

  std::vector<Step> pieces(const Step& gemm, const Cut& cut, std::int64_t part) {
    std::vector<Step> made;
    for (std::int64_t rank = 0; rank < cut.ranks(); ++rank) made.push_back(piece(gemm, cut, part, rank));
    return made;
  }

  Step partOfGather(const Step& gather, const Cut& cut, std::int64_t part) {
    Step made = partOf(gather, cut, part);
    const int to = gather.operands[1].tensor;
    const std::int64_t first = part * cut.ofPart;
    made.operands[0].tensor = rowsOf(gather.operands[0].tensor, first, cut.ofPart);
    made.operands[1].tensor = rowsOf(to, first, cut.rows - first);
    made.collective->rankStride = cut.ofRank * spec(to).cols();
    return made;
  }

  /// The GEMM's result has no other reader.
  bool cutScatter(const std::vector<Step>& steps, const Step& gemm, const Step& scatter) {
    if (!isWhole(scatter, CollectiveKind::ReduceScatter) || gemm.context) return false;
    const int from = scatter.operands[0].tensor;
    const int to = scatter.operands[1].tensor;
    if (!isCuttable(gemm, spec(from).rows()) || !hasPlainRows(tensor(to)) || !isSummandOf(steps, gemm, scatter, from))
      return false;
    const Cut cut = cutOf(gemm, spec(from).rows(), spec(to).rows(), spec(from).bytes());
    if (cut.parts() == 1) return false;
    std::vector<int> sums;
    const int parts = static_cast<int>(cut.parts());
    for (int part = 0; part < parts; ++part)
      sums.push_back(addTensor(from, fmt::format("{} [{}/{}]", tensor(from).name, part + 1, cut.parts()),
                               cut.ranks() * cut.ofPart));
    std::ranges::move(summands(gemm, cut, 0, from, sums[0]), std::back_inserter(m_plan.steps));
    for (int part = 1; part < parts; ++part)
      addBeside(partOfScatter(scatter, cut, part - 1, sums[toIndex(part) - 1]),
                summands(gemm, cut, part, from, sums[toIndex(part)]));
    m_plan.steps.push_back(partOfScatter(scatter, cut, cut.parts() - 1, sums.back()));
    return true;
  }

  bool isSummandOf(const std::vector<Step>& steps, const Step& gemm, const Step& scatter, int result) const {
    const TensorRole role = m_plan.tensors[toIndex(result)].role;
    const auto uses = [&](const Step& step) {
      return std::ranges::any_of(step.operands,
                                 [&](const StepOperand& operand) { return root(operand.tensor) == root(result); });
    };
    return root(result) == result && (role == TensorRole::Intermediate || role == TensorRole::Gradient) && uses(gemm) &&
           std::ranges::count_if(steps, uses) == 2 && uses(scatter);
  }

  /// The pieces of all ranks, in the order in which they are scattered.
  std::vector<Step> summands(const Step& gemm, const Cut& cut, std::int64_t part, int result, int sum) {
    std::vector<Step> made;
    for (std::int64_t rank = 0; rank < cut.ranks(); ++rank)
      made.push_back(piece(gemm, cut, part, rank, {{result, rowsOf(sum, rank * cut.ofPart, cut.ofPart)}}));
    return made;
  }

  Step partOfScatter(const Step& scatter, const Cut& cut, std::int64_t part, int sum) {
    Step made = partOf(scatter, cut, part);
    made.operands[0].tensor = sum;
    made.operands[1].tensor = rowsOf(scatter.operands[1].tensor, part * cut.ofPart, cut.ofPart);
    return made;
  }

  const Graph& m_graph;
  Plan& m_plan;
  std::vector<int>& m_viewOf;
  int m_chunks;
};

}  // namespace

void chunkCollectives(const Graph& graph, Plan& plan, std::vector<int>& viewOf, int chunks) {
  Chunker(graph, plan, viewOf, chunks).cut();
}

}  // namespace fuseline
