// The quantized tensors that a step produces from its result or its input, or the amax of its result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/quantize_steps.h"
#include "kernels/cuda/device/quantize_data.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/quantize/quantize_launch.h"
#include "kernels/cuda/quantize/step_amaxes.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fuseline::cuda {

class StepCopies {
 public:
  /// The step has copies. Errors: several scalings, or one that the backend does not support.
  static Result<StepCopies> make(const CompileRequest& request);
  /// Nothing for a step without copies. Errors: the same.
  static Result<std::optional<StepCopies>> ifAny(const CompileRequest& request);

  const OperandKey& source() const { return m_step->copies.front().source; }
  const TensorSpec& spec() const { return m_step->copies.front().spec; }
  device::CopyKind kind() const;
  ElementFormat format() const;
  /// Is only the amax of the result requested? There is then no kind.
  bool isAmaxOnly() const { return m_step->copies.front().isAmaxOnly(); }
  /// Do other steps compute the other rows of the tensor?
  bool isOfPiece() const { return static_cast<bool>(m_step->window); }

  /// For a kernel that quantizes while it computes the result. Limited to the number of consumers that fitsKernel()
  /// allows.
  bool fitsKernel() const { return m_operands.size() <= device::QuantizedOutputs::kMaxPairs; }
  device::QuantizedOutputs at(Pointers pointers) const;
  /// Shared memory in which an element of a tile waits until all have been computed.
  std::size_t waitingBytes() const {
    return kind() == device::CopyKind::Tensor ? m_operands.size() : sizeBytes(spec().dtype);
  }
  /// Whether a kernel that has whole rows quantizes them, and leaves columnwise values to launchTransposes().
  bool areOfRows() const;
  void launchTransposes(Pointers pointers, const DeviceContext& device) const;
  std::size_t numPairs() const { return m_operands.size(); }
  bool hasColumns() const;
  /// Do quantized values follow from float32, not from the rounded result?
  bool isUnrounded() const { return m_step->copies.front().isUnrounded; }
  /// Memory of an amax that is requested alone and that a kernel raises; set to 0 unless an earlier step has raised it.
  float* clearedAmax(Pointers pointers, const DeviceContext& device) const;
  /// Quantizes the tensor in memory with separate kernels. Values that a kernel would have quantized before rounding
  /// are rounded here.
  void launchFrom(const std::byte* tensor, Pointers pointers, const DeviceContext& device) const;
  /// The same for a step whose operands are the tensors.
  void launchFromSources(Pointers pointers, const DeviceContext& device) const;

  /// Groups of rows that are quantized each by itself; 0: the tensor is quantized as one.
  std::int64_t numGroups() const;
  /// The same for groups of the only tensor, whose sizes the host reads and checks in the first run: they stay the
  /// same. Throws if they do not fit.
  void launchGroups(Pointers pointers, const DeviceContext& device);

  /// A group of rows, and its quantized tensors.
  struct GroupPair {
    std::int64_t firstRow = 0;
    std::int64_t rows = 0;
    device::CopyPair copies;
  };
  /// For a kernel that quantizes groups while it computes the result: by consumer, then by group, with sizes as above.
  std::vector<GroupPair> groupPairs(Pointers pointers, const DeviceContext& device);

 private:
  /// One quantized tensor of a piece. memory null: not requested.
  struct PieceCopy {
    QuantizerSpec quantizer;
    TensorSpec spec;
    std::byte* memory = nullptr;
  };
  /// A part of a tensor that is quantized as a unit.
  struct Piece {
    const std::byte* tensor = nullptr;
    std::int64_t firstRow = 0;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    PieceCopy rowwise, columnwise;
    const float* scale = nullptr;  // delayed scaling
    float* raised = nullptr;       // its history
    const float* amax = nullptr;   // if it is known beforehand
    const float* transformedAmax = nullptr;
    std::string name = {};
  };

  explicit StepCopies(const CompileRequest& request);
  const TensorSpec& specAt(int operand) const;
  PieceCopy copyAt(const std::optional<QuantizerSpec>& quantizer, int operand, Pointers pointers) const;
  device::CodedCopy coded(const PieceCopy& copy) const;
  device::CopyPair pairAt(std::size_t index, Pointers pointers) const;
  Piece pieceOf(std::size_t index, const std::byte* tensor, Pointers pointers) const;
  bool findsAmaxes() const;
  /// All with one scaling, and all with a scale or an amax that is known beforehand, or none.
  void launchPieces(std::span<const Piece> pieces, const DeviceContext& device) const;
  void launchTensors(std::span<const Piece> pieces, const DeviceContext& device) const;
  void launchBlocks(std::span<const Piece> pieces, const DeviceContext& device) const;
  void launchNvfp4(std::span<const Piece> pieces, const DeviceContext& device) const;
  void launchTransformedAmax(const std::byte* tensor, Pointers pointers, const DeviceContext& device) const;
  AmaxSearch searchOf(const Piece& piece, float* amax) const;

  std::vector<std::int64_t> readSizes(Pointers pointers, const DeviceContext& device) const;
  /// Without the tensor.
  std::vector<Piece> groupPieces(std::size_t index, Pointers pointers, const DeviceContext& device);
  std::vector<PieceCopy> groupCopiesOf(const std::optional<QuantizerSpec>& quantizer, int operand,
                                       std::span<const std::int64_t> sizes, Pointers pointers,
                                       const DeviceContext& device) const;

  const Graph* m_graph;
  const Plan* m_plan;
  const Step* m_step;
  std::vector<QuantizeOperands> m_operands;  // by quantization work of the step
  std::vector<std::int64_t> m_groupSizes;    // empty: they have not been read yet
  bool m_hasFixedSizes = true;               // the same in every run
  StepAmaxes m_amaxes;                       // those that are not known beforehand
};

/// The one scaling of both directions of a tensor, or of the only one.
Scaling scalingOf(const TensorQuantizers& quantizers);

/// Can a kernel that has whole rows quantize them? Columnwise quantized tensors must then have rowwise scales: with
/// scales per line, a column's scale is known only after all of its rows.
bool areOfRows(const TensorQuantizers& quantizers);

/// Whether elementwise kernels can produce these quantized tensors, or compute the amax; no names the obstacle.
Verdict canMakeCopies(const KernelQuery& query);

}  // namespace fuseline::cuda
