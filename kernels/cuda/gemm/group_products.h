// GEMMs of groups of rows, whose sizes come with the first run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/grouped_linear_step.h"
#include "kernels/cuda/gemm/factor.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/stream/lanes.h"
#include "kernels/cuda/support/workspace.h"

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fuseline::cuda {

/// A factor of one group.
struct GroupPart {
  TensorSpec spec;
  const std::byte* data = nullptr;
};

/// A factor of all groups: a tensor with their rows, or a weight for each. Groups are quantized separately.
class GroupFactor {
 public:
  GroupFactor() = default;
  /// A tensor with the rows.
  explicit GroupFactor(Binding rows);
  /// Weights.
  GroupFactor(const CompileRequest& request, const GroupedParameter& weights);

  /// The binding that the GEMM's problem follows from.
  const Binding& any() const { return m_bindings.front(); }
  /// The largest part: that of all rows, or a weight.
  TensorSpec largestPart() const;
  std::vector<GroupPart> parts(std::span<const RowGroup> groups, Pointers pointers) const;

 private:
  std::vector<GroupPart> rowParts(std::span<const RowGroup> groups, Pointers pointers) const;
  std::vector<GroupPart> weightParts(std::size_t numGroups, Pointers pointers) const;

  std::vector<Binding> m_bindings;
  std::int64_t m_numWeights = 0;  // in one tensor; 0: each in its own, or no weights
  bool m_hasRows = false;
};

/// c_g = a_g b_g for every group g: all in one launch where the library has a grouped GEMM for them, else each a
/// separate GEMM, on several streams. cuBLAS has grouped GEMMs everywhere (cublasGemmGroupedBatchedEx), but with
/// neither FP8 scales nor epilogues.
class GroupProducts {
 public:
  GroupProducts() = default;
  /// problem: for all rows. Errors: the library cannot solve it.
  static Result<GroupProducts> make(const CompileRequest& request, GemmProblem problem, GroupExtent extent,
                                    GroupFactor a, GroupFactor b);

  /// Kernel::ways.
  std::vector<std::string> ways() const;

  /// Workspace of a lane, in bytes.
  std::size_t workspaceBytes() const { return m_device ? gemmBytes() + m_factorBytes : 0; }

  /// Workspace of multiplyTogether(), in bytes.
  std::size_t togetherBytes() const { return m_together ? workspacePart(m_together->workspaceBytes()) : 0; }

  /// Call before the GEMMs of a run.
  void begin(std::span<const RowGroup> groups, Pointers pointers);
  /// Are the groups of this run multiplied in one launch?
  bool areTogether() const { return m_areTogether; }
  /// If they are. others(group): all pointers except its factors; c null: its result is not requested.
  void multiplyTogether(std::span<const RowGroup> groups, const std::function<GemmPointers(std::size_t)>& others,
                        std::byte* workspace);
  /// The GEMM of a group. others: all pointers except its factors. Throws if the library does not support this size.
  void multiply(std::size_t group, std::int64_t rows, GemmPointers others, const Lane& lane);

 private:
  GroupProducts(const CompileRequest& request, const GemmProblem& problem, GroupExtent extent, GroupFactor a,
                GroupFactor b);
  std::size_t mostFactorBytes() const;
  std::size_t gemmBytes() const;
  Result<void> addSamples();
  /// For quantized factors that the library does not multiply.
  void decode();
  Gemm& of(std::int64_t rows);
  Result<void> add(std::int64_t rows, bool hasTimeToTune);
  void prepareTogether(std::size_t numGroups);
  bool canBeTogether(std::span<const RowGroup> groups) const;
  /// Fills in the factors of a group.
  void prepareFactors(std::size_t group, std::int64_t rows, GemmPointers& pointers, const Lane& lane) const;
  GemmProblem problemFor(std::int64_t rows) const;
  FactorWay wayFor(std::int64_t rows) const;
  bool dependsOnRows() const;

  const DeviceContext* m_device = nullptr;
  GemmProblem m_problem;
  GroupExtent m_extent = nullptr;
  GroupFactor m_a, m_b;
  std::size_t m_factorBytes = 0;  // of the largest parts
  bool m_isDecoded = false;
  std::unique_ptr<GroupedGemm> m_together;  // null: there is none
  bool m_areTogether = false;
  /// Parts of the current run.
  std::vector<GroupPart> m_aParts, m_bParts;
  /// By number of rows: no more than there are groups.
  std::map<std::int64_t, std::unique_ptr<Gemm>> m_gemms;
};

}  // namespace fuseline::cuda
