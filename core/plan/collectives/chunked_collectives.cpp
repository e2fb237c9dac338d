// Finds a gather before a GEMM, or a scatter after it, and cuts both.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collectives/chunked_collectives.h"

#include "core/plan/collectives/chunk_cut.h"
#include "core/plan/collectives/overlapped_collectives.h"
#include "core/support/to_index.h"
#include "core/tensor/scaling.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Steps = std::vector<Step>;

constexpr const char* kCommName = "userbuffers_comm_name";

/// Per-tensor scales and MXFP8, as in TransformerEngine.
bool hasUserbuffersRecipe(const Node& linear) {
  const std::optional<QuantizerSpec>& input = linear.quantizers.input.rowwise;
  return !input || input->scaling == Scaling::PerTensor || input->scaling == Scaling::Mx1x32;
}

/// "fc1_fprop": the communicator with which TransformerEngine would overlap this GEMM. Empty: it would not.
std::string communicatorName(const Node& linear, Phase phase) {
  if (!linear.attributes.has(kCommName) || !hasUserbuffersRecipe(linear)) return {};
  return linear.attributes.text(kCommName) + (phase == Phase::Forward ? "_fprop" : "_dgrad");
}

class Chunker {
 public:
  Chunker(const Graph& graph, Plan& plan, std::vector<int>& viewOf, int chunks)
      : m_graph(graph), m_plan(plan), m_viewOf(viewOf), m_chunks(chunks) {}

  void cut() {
    Steps steps = std::exchange(m_plan.steps, {});
    for (std::size_t index = 0; index < steps.size();) {
      std::size_t end = cutGather(steps, index);
      if (end == index) end = cutScatter(steps, index);
      if (end == index) m_plan.steps.push_back(std::move(steps[end++]));
      index = end;
    }
  }

 private:
  PlanTensor& tensor(int index) { return m_plan.tensors[toIndex(index)]; }
  const TensorSpec& spec(int index) const { return m_plan.tensors[toIndex(index)].spec; }
  int root(int index) const {
    while (m_viewOf[toIndex(index)] != index) index = m_viewOf[toIndex(index)];
    return index;
  }
  bool uses(const Step& step, int wanted) const {
    return std::ranges::any_of(step.operands,
                               [&](const StepOperand& operand) { return root(operand.tensor) == root(wanted); });
  }

  static std::size_t nextLaunched(const Steps& steps, std::size_t index) {
    do ++index;
    while (index < steps.size() && !steps[index].isLaunched());
    return index;
  }

  static bool isWhole(const Step& step, CollectiveKind kind) {
    return step.isLaunched() && step.collective && step.collective->kind == kind &&
           step.collective->half == CollectiveWork::Half::Whole;
  }

  /// Rows [first, first + count) of a tensor.
  int rowsOf(int source, std::int64_t first, std::int64_t count) {
    PlanTensor rows = tensor(source);
    rows.name = fmt::format("{}[{}:{}]", rows.name, first, first + count);
    if (rows.spec.quantized)
      rows.spec.quantized->window = {.first = first, .whole = rows.spec.rows()};
    else
      rows.columns.firstElement += first * (rows.columns ? rows.columns.rowStride : rows.spec.cols());
    rows.spec.shape = {count, rows.spec.cols()};
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
  Step piece(const Step& gemm, const ChunkCut& cut, std::int64_t part, std::int64_t rank,
             const std::map<int, int>& elsewhere = {}) {
    Step made = gemm;
    made.name = fmt::format("{} [{}/{}]", gemm.name, part * cut.ranks() + rank + 1, cut.parts() * cut.ranks());
    made.flops = gemm.flops / cut.rows * cut.ofPart;
    const std::int64_t firstRow = rank * cut.ofRank + part * cut.ofPart;
    made.window = {.first = firstRow, .whole = cut.rows};
    made.note.clear();  // of an op without overlap
    for (QuantizeWork& work : made.copies) work.spec.shape = {cut.ofPart, work.spec.cols()};
    std::map<int, int> rows;
    for (StepOperand& operand : made.operands) {
      const int whole = operand.tensor;
      if (const auto other = elsewhere.find(whole); other != elsewhere.end()) {
        operand.tensor = other->second;
      } else if (hasRows(gemm, operand)) {
        const auto [known, isNew] = rows.try_emplace(whole, -1);
        if (isNew) known->second = rowsOf(whole, firstRow, cut.ofPart);
        operand.tensor = known->second;
      } else if (firstRow > 0 && operand.access == OperandAccess::Write) {
        operand.access = OperandAccess::Accumulate;  // an amax
      }
    }
    countBytes(made);
    return made;
  }

  void countBytes(Step& step) const {
    step.bytesRead = step.bytesWritten = 0;
    for (const StepOperand& operand : step.operands) {
      if (operand.access != OperandAccess::Write) step.bytesRead += spec(operand.tensor).bytes();
      if (operand.access != OperandAccess::Read) step.bytesWritten += spec(operand.tensor).bytes();
    }
  }

  Step partOf(const Step& collective, const Step& gemm, const ChunkCut& cut, std::int64_t part) const {
    Step made = collective;
    if (const std::string name = communicatorName(m_graph.node(gemm.nodes.front()), gemm.phase); !name.empty())
      made.note += fmt::format("{}Userbuffers {}", made.note.empty() ? "" : "; ", name);
    made.name = fmt::format("{} [{}/{}]", collective.name, part + 1, cut.parts());
    made.collective->chunks = static_cast<int>(cut.parts());
    made.bytesRead /= cut.parts();
    made.bytesWritten /= cut.parts();
    return made;
  }

  void add(Steps steps) { std::ranges::move(steps, std::back_inserter(m_plan.steps)); }

  /// Sends beside `steps`.
  void addBeside(Step sent, Steps steps) {
    sent.collective->half = CollectiveWork::Half::Begin;
    Step wait = waitFor(sent);
    m_plan.steps.push_back(std::move(sent));
    add(std::move(steps));
    m_plan.steps.push_back(std::move(wait));
  }

  /// The index of the step behind those that it replaces; `index`: it replaces none.
  std::size_t cutGather(Steps& steps, std::size_t index) {
    Step& gather = steps[index];
    if (!isWhole(gather, CollectiveKind::AllGather)) return index;
    const int to = gather.operands[1].tensor;
    const std::size_t reader = readerOf(steps, index, to);
    if (reader == steps.size() || isBesideGemm(steps, index, reader)) return index;
    const Step& gemm = steps[reader];
    const std::optional<ChunkCut> cut = cutOfGather(gather, gemm);
    if (!cut) return index;
    m_plan.steps.push_back(partOfGather(gather, gemm, *cut, 0));
    Steps transposes;
    for (std::size_t between = index + 1; between < reader; ++between) {
      if (isTransposing(steps[between], to)) takeTranspose(steps[between], transposes);
      m_plan.steps.push_back(std::move(steps[between]));
    }
    for (std::int64_t part = 1; part < cut->parts(); ++part)
      addBeside(partOfGather(gather, gemm, *cut, part), pieces(gemm, *cut, part - 1));
    add(pieces(gemm, *cut, cut->parts() - 1));
    add(std::move(transposes));
    return reader + 1;
  }

  /// The step that adds the scale of all ranks to gathered values, and may transpose them.
  bool isScaleOf(const Step& step, int gathered) const {
    return step.kernel == "gathered_codes" && step.operands[1].tensor == gathered;
  }
  bool isTransposing(const Step& step, int gathered) const {
    return isScaleOf(step, gathered) && step.operands.size() > 2;
  }

  /// The scale is there first, and the values of all parts are transposed.
  void takeTranspose(Step& scale, Steps& transposes) const {
    transposes.push_back(scale);
    scale.operands.pop_back();
    countBytes(scale);
  }

  std::optional<ChunkCut> cutOfGather(Step& gather, const Step& gemm) const {
    const PlanTensor& rows = m_plan.tensors[toIndex(gather.operands[0].tensor)];
    const TensorSpec& whole = spec(gather.operands[1].tensor);
    if (const Verdict sends = canSendRows(rows); !sends) return refused(gather, sends.reason());
    if (const Verdict cuts = canCut(m_plan, gemm, whole.rows()); !cuts) return refused(gather, cuts.reason());
    return cutInto(gather, cutOf(m_plan, gemm, whole.rows(), rows.spec.rows(), whole.bytes(), m_chunks));
  }

  static std::optional<ChunkCut> cutInto(Step& collective, const ChunkCut& cut) {
    if (cut.wanted == 1) return refused(collective, "one part is the fastest in a model of H100 GPUs");
    const std::string blocks = cut.multiple > 1 ? fmt::format(" of a multiple of {} rows", cut.multiple) : "";
    const std::string problem =
        fmt::format("the {} rows of a rank do not divide into {} parts{}", cut.ofRank,
                    cut.parts() > 1 ? fmt::format("{}", cut.wanted) : rangeOf(cut.wanted), blocks);
    if (cut.parts() == 1) return refused(collective, problem);
    if (cut.parts() < cut.wanted)
      addProblem(collective, fmt::format("{} chunks instead of {}: {}", cut.parts(), cut.wanted, problem), "");
    return cut;
  }

  /// "2", "2 to 4".
  static std::string rangeOf(std::int64_t parts) { return parts == 2 ? "2" : fmt::format("2 to {}", parts); }

  static std::nullopt_t refused(Step& collective, const std::string& reason) {
    addProblem(collective, reason, "not in chunks: ");
    collective.collective->chunks = 1;
    return std::nullopt;
  }

  /// beginning: of its note.
  static void addProblem(Step& collective, const std::string& problem, const char* beginning) {
    collective.collective->chunkProblem = problem;
    collective.note += fmt::format("{}{}{}", collective.note.empty() ? "" : "; ", beginning, problem);
  }

  /// The first step that computes with what is gathered; the end: another collective is first.
  std::size_t readerOf(const Steps& steps, std::size_t index, int gathered) const {
    for (index = nextLaunched(steps, index); index < steps.size(); index = nextLaunched(steps, index)) {
      if (steps[index].collective) return steps.size();
      if (uses(steps[index], gathered) && !isScaleOf(steps[index], gathered)) return index;
    }
    return index;
  }

  /// TransformerEngine gathers the input of a column-parallel layer again during the whole dgrad GEMM.
  static bool isBesideGemm(const Steps& steps, std::size_t index, std::size_t reader) {
    return std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                       steps.begin() + static_cast<std::ptrdiff_t>(reader),
                       [](const Step& step) { return step.isWork() && step.flops > 0; });
  }

  Steps pieces(const Step& gemm, const ChunkCut& cut, std::int64_t part) {
    Steps made;
    for (std::int64_t rank = 0; rank < cut.ranks(); ++rank) made.push_back(piece(gemm, cut, part, rank));
    return made;
  }

  Step partOfGather(const Step& gather, const Step& gemm, const ChunkCut& cut, std::int64_t part) {
    Step made = partOf(gather, gemm, cut, part);
    made.operands.clear();
    for (std::size_t i = 0; i < gather.operands.size(); i += 2) {
      StepOperand from = gather.operands[i], to = gather.operands[i + 1];
      const bool isCut = isSentInParts(from.tensor, cut.ofPart);
      if (!isCut && part + 1 < cut.parts()) continue;
      if (isCut) {
        from.tensor = rowsOf(from.tensor, part * cut.ofPart, cut.ofPart);
        to.tensor = rowsOf(to.tensor, part * cut.ofPart, cut.rows - part * cut.ofPart);
      }
      made.operands.insert(made.operands.end(), {from, to});
    }
    made.collective->rankRows = cut.ofRank;
    made.bytesRead = made.bytesWritten = 0;
    for (const StepOperand& operand : made.operands)
      if (operand.access == OperandAccess::Read) made.bytesRead += spec(operand.tensor).bytes();
    made.bytesWritten = made.bytesRead * cut.ranks();
    return made;
  }

  /// Other tensors are sent with the last part.
  bool isSentInParts(int index, std::int64_t rows) const {
    const PlanTensor& sent = m_plan.tensors[toIndex(index)];
    return canSendRows(sent) && (!sent.spec.quantized || rows % windowMultiple(*sent.spec.quantized) == 0);
  }

  std::size_t cutScatter(Steps& steps, std::size_t index) {
    const std::size_t next = nextLaunched(steps, index);
    const Step& gemm = steps[index];
    if (next >= steps.size() || !gemm.isLaunched() || !isWhole(steps[next], CollectiveKind::ReduceScatter) ||
        gemm.context)
      return index;
    Step& scatter = steps[next];
    const std::optional<ChunkCut> cut = cutOfScatter(steps, gemm, scatter);
    if (!cut) return index;
    const int from = scatter.operands[0].tensor;
    const int parts = static_cast<int>(cut->parts());
    std::vector<int> sums;
    for (int part = 0; part < parts; ++part)
      sums.push_back(
          addTensor(from, fmt::format("{} [{}/{}]", tensor(from).name, part + 1, parts), cut->ranks() * cut->ofPart));
    add(summands(gemm, *cut, 0, from, sums[0]));
    for (int part = 1; part < parts; ++part)
      addBeside(partOfScatter(scatter, gemm, *cut, part - 1, sums[toIndex(part) - 1]),
                summands(gemm, *cut, part, from, sums[toIndex(part)]));
    m_plan.steps.push_back(partOfScatter(scatter, gemm, *cut, parts - 1, sums.back()));
    for (std::size_t between = index + 1; between < next; ++between) m_plan.steps.push_back(std::move(steps[between]));
    return next + 1;
  }

  std::optional<ChunkCut> cutOfScatter(const Steps& steps, const Step& gemm, Step& scatter) const {
    const int from = scatter.operands[0].tensor;
    const PlanTensor& rows = m_plan.tensors[toIndex(scatter.operands[1].tensor)];
    if (const Verdict sends = canSendRows(rows); !sends) return refused(scatter, sends.reason());
    if (const Verdict cuts = canCut(m_plan, gemm, spec(from).rows()); !cuts) return refused(scatter, cuts.reason());
    if (!isSummandOf(steps, gemm, scatter, from))
      return refused(scatter, fmt::format("the result of {} has other consumers", gemm.name));
    return cutInto(scatter, cutOf(m_plan, gemm, spec(from).rows(), rows.spec.rows(), spec(from).bytes(), m_chunks));
  }

  /// The GEMM's result has no other reader.
  bool isSummandOf(const Steps& steps, const Step& gemm, const Step& scatter, int result) const {
    const TensorRole role = m_plan.tensors[toIndex(result)].role;
    const auto isUser = [&](const Step& step) { return uses(step, result); };
    return root(result) == result && (role == TensorRole::Intermediate || role == TensorRole::Gradient) &&
           isUser(gemm) && std::ranges::count_if(steps, isUser) == 2 && isUser(scatter);
  }

  /// The pieces of all ranks, in the order in which they are scattered.
  Steps summands(const Step& gemm, const ChunkCut& cut, std::int64_t part, int result, int sum) {
    Steps made;
    for (std::int64_t rank = 0; rank < cut.ranks(); ++rank)
      made.push_back(piece(gemm, cut, part, rank, {{result, rowsOf(sum, rank * cut.ofPart, cut.ofPart)}}));
    return made;
  }

  Step partOfScatter(const Step& scatter, const Step& gemm, const ChunkCut& cut, std::int64_t part, int sum) {
    Step made = partOf(scatter, gemm, cut, part);
    made.operands[0].tensor = sum;
    made.operands[1].tensor = rowsOf(scatter.operands[1].tensor, part * cut.ofPart, cut.ofPart);
    return made;
  }

  const Graph& m_graph;
  Plan& m_plan;
  std::vector<int>& m_viewOf;
  int m_chunks;
};

/// "fc1.gather (forward)", whichever part it is.
std::string collectiveOf(const Step& step) {
  return fmt::format("{} ({})", step.name.substr(0, step.name.find(" [")), phaseName(step.phase));
}

}  // namespace

std::string chunkProblem(const Plan& plan, int chunks) {
  const Step* first = nullptr;
  std::set<std::string> all;
  std::set<std::string> others;
  for (const Step& step : plan.steps) {
    if (!step.collective || step.collective->isWait() || step.collective->chunks == 0) continue;
    all.insert(collectiveOf(step));
    if (step.collective->chunks == chunks) continue;
    others.insert(collectiveOf(step));
    if (!first) first = &step;
  }
  if (all.empty()) return "no collective gathers or scatters the rows of a GEMM, as sequence_parallel layers do.";
  if (!first) return {};
  return fmt::format("{} of {} collectives beside GEMMs have fewer chunks. {}: {}.", others.size(), all.size(),
                     collectiveOf(*first), first->collective->chunkProblem);
}

void chunkCollectives(const Graph& graph, Plan& plan, std::vector<int>& viewOf, int chunks) {
  Chunker(graph, plan, viewOf, chunks).cut();
}

}  // namespace fuseline
