// Tensor parallelism: shapes on P ranks. Shapes are those of one rank; sequence parallelism and the collectives split
// the first axis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace fuseline {

/// Size of the group that pipelines run on: there is no communicator between processes.
inline constexpr std::int64_t kRanks = 1;

/// Sets inferOnRanks, and infer as inferOnRanks with kRanks ranks.
BasicOperation inferredOnRanks(BasicOperation op);

/// How a linear layer is split. On one rank it is neither split nor sequence-parallel, independent of the attributes,
/// as in TransformerEngine.
struct TensorParallelism {
  enum class Mode { None, Column, Row } mode = Mode::None;
  bool isSequenceParallel = false;
};

/// Reads tensor_parallel_mode and sequence_parallel.
TensorParallelism tensorParallelism(const Attributes& attributes, std::int64_t ranks);

/// count / ranks. Errors: "BasicLinear: out_features is 10, which 4 ranks cannot share equally; it must be a multiple
/// of 4."
Result<std::int64_t> shareOf(std::string_view operation, std::string_view attribute, std::int64_t count,
                             std::int64_t ranks);

/// The shape after an all-gather: the first axis times ranks. Errors: a scalar on more than one rank.
Result<Shape> gathered(std::string_view operation, Shape shape, std::int64_t ranks);
/// The shape after a reduce-scatter: the first axis over ranks. Errors: a scalar on more than one rank; a first axis
/// that does not divide.
Result<Shape> scattered(std::string_view operation, Shape shape, std::int64_t ranks);

/// sequence_parallel.
AttributeSpec sequenceParallelAttribute();

/// userbuffers_comm_name.
AttributeSpec userbuffersAttribute();
/// "Userbuffers overlap is not run", for a linear that has it; else empty.
std::string userbuffersNote(const Attributes& attributes);

namespace ops {

/// The basic ops of the composite Linear on each of `ranks` ranks: BasicLinear, Bias, and after a row-parallel layer
/// the sum over ranks, AllReduce or ReduceScatter. Errors: in_features of a row-parallel layer that is not divisible by
/// the ranks.
Result<std::vector<ExpandedOperation>> linearParts(const Attributes& attributes, std::int64_t ranks);

}  // namespace ops

}  // namespace fuseline
