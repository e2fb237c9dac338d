// Opens the quantized tensors of all groups, and shares their blocks of rows among the threads.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/quantize/group_copies.h"

#include "kernels/cpu/quantize/quantized_copy.h"

#include <algorithm>
#include <vector>

#include <omp.h>

namespace fuseline::cpu {

struct GroupCopies::Group {
  std::int64_t firstRow = 0;
  std::int64_t rows = 0;
  std::vector<CopyRows> copies;
  std::vector<std::byte*> histories;
};

namespace {

/// A block of rows, in whole blocks of the scaling.
struct Block {
  std::size_t group;
  std::int64_t first;  // in its group
  std::int64_t count;
  float amax = 0.0F;
};

}  // namespace

GroupCopies::GroupCopies(const CompileRequest& request)
    : m_graph(request.graph), m_plan(request.plan), m_step(request.step), m_threads(request.settings.threads) {
  for (const QuantizeWork& work : m_step.copies)
    m_blockRows = std::max(m_blockRows, CopyRows::blockRows(work.quantizers));
}

std::int64_t GroupCopies::rowBytes() const {
  const TensorSpec& spec = m_step.copies.front().spec;
  return spec.cols() * sizeBytes(spec.dtype);
}

std::size_t GroupCopies::scratchBytes() const {
  return isEmpty() ? 0 : static_cast<std::size_t>(m_threads * m_blockRows * rowBytes());
}

void GroupCopies::open(const QuantizePiece& piece, const TensorQuantizers& quantizers, Group& group) const {
  group.firstRow = piece.firstRow;
  group.rows = piece.source.rows();
  group.copies.emplace_back(piece.source, quantizers, piece.inputs, 0.0F,
                            CopyRows::Copy{piece.rowwise, piece.rowwiseMemory},
                            CopyRows::Copy{piece.columnwise, piece.columnwiseMemory});
  if (piece.history) group.histories.push_back(piece.history);
}

std::vector<GroupCopies::Group> GroupCopies::openGroups(Pointers pointers) const {
  std::vector<Group> groups;
  for (const QuantizeWork& work : m_step.copies) {
    const std::vector<QuantizePiece> pieces = quantizePieces(m_graph, m_plan, m_step, work, pointers);
    groups.resize(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) open(pieces[i], work.quantizers, groups[i]);
  }
  return groups;
}

void GroupCopies::run(Pointers pointers, std::byte* result, std::byte* scratch, const MakeRows& make) const {
  std::vector<Group> groups = openGroups(pointers);
  std::vector<Block> blocks;
  for (std::size_t group = 0; group < groups.size(); ++group)
    for (std::int64_t first = 0; first < groups[group].rows; first += m_blockRows)
      blocks.push_back({group, first, std::min(m_blockRows, groups[group].rows - first)});
#pragma omp parallel for num_threads(m_threads)
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Block& block = blocks[i];
    Group& group = groups[block.group];
    const std::int64_t first = group.firstRow + block.first;
    std::byte* const rows =
        result ? result + first * rowBytes() : scratch + omp_get_thread_num() * m_blockRows * rowBytes();
    make(first, block.count, rows);
    for (CopyRows& copy : group.copies) copy.write(rows, block.first, block.count);
    if (!group.histories.empty()) block.amax = amaxOfRows(rows, m_step.copies.front().spec, block.count);
  }
  for (const Block& block : blocks)
    for (std::byte* const history : groups[block.group].histories) recordAmax(history, block.amax);
}

}  // namespace fuseline::cpu
