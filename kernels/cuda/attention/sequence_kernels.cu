// Tables of sequences for a library's attention, and zeros in the rows of which no library says what they hold.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/sequence_launch.h"

#include "kernels/cuda/stream/launch.h"

#include <type_traits>

#include <cuda_runtime.h>

#include "kernels/cuda/device/attention.h"
#include "kernels/cuda/device/elementwise.h"

namespace fuseline::cuda {

namespace {

using namespace device;

constexpr int kThreads = 128;
/// The difference of any score and it is far below the exponents that float32 has.
constexpr float kBeyondScores = 1e30f;

using Row = ScoreRow<ScoreRules, AttentionPass>;

__device__ bool seesAny(const Row& row) { return row.isInside() && row.first() < row.last(); }

__device__ std::int32_t lengthOf(const std::int64_t* sums, std::int64_t sequence, std::int64_t all) {
  return static_cast<std::int32_t>(sums ? sums[sequence + 1] - sums[sequence] : all);
}

/// A thread has a sequence, and one the end of the last.
__global__ void __launch_bounds__(kThreads) writeTables(const __grid_constant__ SequenceTables task) {
  const std::int64_t sequence = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (sequence > task.numSequences) return;
  for (int i = 0; i < task.numOffsets; ++i)
    task.offsets[i].to[sequence] = task.offsets[i].sums[sequence] * task.offsets[i].tokenStride;
  if (sequence == task.numSequences) return;
  task.lengthsQ[sequence] = lengthOf(task.sumsQ, sequence, task.queries);
  task.lengthsKv[sequence] = lengthOf(task.sumsKv, sequence, task.keys);
}

/// A thread has a row of a head.
__global__ void __launch_bounds__(kThreads) writeStatistics(const __grid_constant__ SeenStatistics task) {
  const ScoreRules& rules = task.rules;
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= task.entries * rules.heads * rules.queries) return;
  const Row row(rules, AttentionPass(), index % rules.queries, index / rules.queries);
  task.to[row.lseIndex()] = seesAny(row) ? task.lse[row.lseIndex()] : kBeyondScores;
}

/// blockIdx: token, entry. Heads of a token see the same keys.
template <Element kElement>
__global__ void __launch_bounds__(kThreads) clearUnseen(const __grid_constant__ UnseenRows task) {
  const Row row(task.rules, AttentionPass(), blockIdx.x, blockIdx.y * task.rules.groups);
  if (seesAny(row)) return;
  const std::int64_t first = blockIdx.y * task.batchStride + blockIdx.x * task.tokenStride;
  for (std::int64_t i = threadIdx.x; i < task.heads * task.channels; i += kThreads)
    storeElement(kElement, task.data, first + i / task.channels * task.headStride + i % task.channels, 0.0f);
  if (!task.lse) return;
  for (std::int64_t head = threadIdx.x; head < task.heads; head += kThreads)
    task.lse[Row(task.rules, AttentionPass(), blockIdx.x, blockIdx.y * task.rules.groups + head).lseIndex()] =
        minusInfinity();
}

auto clearKernelFor(Element element) {
  switch (element) {
    case Element::F16: return clearUnseen<Element::F16>;
    case Element::BF16: return clearUnseen<Element::BF16>;
    case Element::F32: break;
  }
  return clearUnseen<Element::F32>;
}

/// Every head is a group, so that a unit is an entry and a head.
ScoreRules withOwnGroups(ScoreRules rules) {
  rules.groups = rules.heads;
  return rules;
}

dim3 blocksFor(std::int64_t threads) { return dim3(static_cast<unsigned>((threads + kThreads - 1) / kThreads)); }

}  // namespace

void launchSequenceTables(const SequenceTables& tables, Stream stream) {
  launch(writeTables, blocksFor(tables.numSequences + 1), dim3(kThreads), 0, stream, tables);
}

void launchSeenStatistics(const SeenStatistics& statistics, Stream stream) {
  SeenStatistics task = statistics;
  task.rules = withOwnGroups(task.rules);
  const std::int64_t rows = task.entries * task.rules.heads * task.rules.queries;
  if (rows > 0) launch(writeStatistics, blocksFor(rows), dim3(kThreads), 0, stream, task);
}

void launchClearUnseen(const UnseenRows& rows, Stream stream) {
  UnseenRows task = rows;
  task.rules = withOwnGroups(task.rules);
  const dim3 grid(static_cast<unsigned>(task.rules.queries), static_cast<unsigned>(task.entries));
  if (task.rules.queries * task.entries > 0)
    launch(clearKernelFor(task.element), grid, dim3(kThreads), 0, stream, task);
}

}  // namespace fuseline::cuda
