// Shares of extents.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/tensor_parallel.h"

#include "core/ops/shared_attributes.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr const char* kUserbuffers = "userbuffers_comm_name";

Error isScalar(std::string_view operation, std::int64_t ranks) {
  return Error{fmt::format("{}: x is a scalar, but {} ranks split its first axis; it needs at least one axis.",
                           operation, ranks)};
}

}  // namespace

BasicOperation inferredOnRanks(BasicOperation op) {
  op.infer = [infer = op.inferOnRanks](const Attributes& attributes, std::span<const TensorSpec> inputs) {
    return infer(attributes, inputs, kRanks);
  };
  return op;
}

TensorParallelism tensorParallelism(const Attributes& attributes, std::int64_t ranks) {
  const std::string& mode = attributes.text("tensor_parallel_mode");
  if (ranks == 1 || mode == "none") return {};
  return {.mode = mode == "column" ? TensorParallelism::Mode::Column : TensorParallelism::Mode::Row,
          .isSequenceParallel = attributes.boolean("sequence_parallel")};
}

Result<std::int64_t> shareOf(std::string_view operation, std::string_view attribute, std::int64_t count,
                             std::int64_t ranks) {
  if (count % ranks == 0) return count / ranks;
  return Error{fmt::format("{}: {} is {}, which {} ranks cannot share equally; it must be a multiple of {}.", operation,
                           attribute, count, ranks, ranks)};
}

Result<Shape> gathered(std::string_view operation, Shape shape, std::int64_t ranks) {
  if (ranks == 1) return shape;
  if (shape.empty()) return isScalar(operation, ranks);
  shape.front() *= ranks;
  return shape;
}

Result<Shape> scattered(std::string_view operation, Shape shape, std::int64_t ranks) {
  if (ranks == 1) return shape;
  if (shape.empty()) return isScalar(operation, ranks);
  if (shape.front() % ranks != 0)
    return Error{
        fmt::format("{}: the first axis of {} has {} elements, which {} ranks cannot share equally; it must "
                    "be a multiple of {}.",
                    operation, toString(shape), shape.front(), ranks, ranks)};
  shape.front() /= ranks;
  return shape;
}

AttributeSpec sequenceParallelAttribute() {
  return booleanAttribute(
      "sequence_parallel", false,
      "Sequence parallelism: tensors whose last axis is not sharded are sharded along the first; column gathers x, row "
      "scatters y. No effect without a tensor_parallel_mode, or on one rank.");
}

AttributeSpec userbuffersAttribute() {
  return {
      .name = kUserbuffers,
      .type = AttributeType::Text,
      .optional = true,
      .isName = true,
      .help =
          "Value of comm_name, the only key of TransformerEngine's userbuffers_options, such as qkv, proj, fc1 or fc2. "
          "For the value NAME, TransformerEngine uses the communicators NAME_fprop, NAME_dgrad and NAME_wgrad to "
          "overlap communication with the GEMMs of a tensor-parallel layer, in chunks. Runs in "
          "Fuseline only name the communicator: `--chunks N` chooses their chunks, for all layers."};
}

std::string userbuffersNote(const Attributes& attributes) {
  return attributes.has(kUserbuffers) ? "runs without Userbuffers overlap" : "";
}

}  // namespace fuseline
