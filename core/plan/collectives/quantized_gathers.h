// All-gathers that carry quantized values in place of the tensor that a GEMM reads quantized.
// Source: TransformerEngine gathers encoded values: of each direction when a GEMM needs it, with the scales of blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/quantized_copies.h"

#include <map>
#include <utility>
#include <vector>

namespace fuseline {

class QuantizedGathers {
 public:
  /// Adds to steps. All outlive it.
  QuantizedGathers(const Graph& graph, const FusionReport& report, const CopyNeeds& needs, PlanTensors& tensors,
                   QuantizedCopies& copies, std::vector<Step>& steps);

  /// Is this the gather of a tensor that is quantized before it is sent? It needs no step of its own.
  bool isQuantized(const FusedOperation& entry, Phase phase) const;
  bool isGathered(const GemmOperand& reader) const { return m_gathers.contains({reader.node, reader.type}); }
  /// Quantizes the rows of this rank, gathers the encoded values, and makes the quantized tensors of them that the
  /// reader's GEMMs of this pass need. isGathered(reader) holds.
  void addSteps(Phase phase, const GemmOperand& reader);
  /// In front of a backward entry: gathers the columnwise tensors of its inputs. Until then a rank keeps its own rows.
  void addRegathers(const FusedOperation& entry);

 private:
  /// A quantized tensor of the rows of this rank, which is not sent yet.
  struct OwnRows {
    Usage direction;
    int tensor;
  };
  using Key = std::pair<NodeId, TensorType>;  // a tensor's reader

  void findForward(NodeId gather);
  void findBackward(const FusionReport& report, NodeId gather);
  void addIfSendable(const GemmOperand& reader, NodeId gather, ValueId rows);
  bool isSendable(const GemmOperand& reader, const TensorSpec& rows) const;

  const TensorQuantizers& quantizersOf(const GemmOperand& reader) const;
  std::vector<Usage> quantizedDirections(const GemmOperand& reader) const;
  int rowsOfRank(Phase phase, NodeId gather);
  void quantizeRows(Phase phase, const GemmOperand& reader, int source);
  int amaxOfAllRanks(Phase phase, const GemmOperand& reader, int source);
  void gatherRows(Phase phase, const GemmOperand& reader, const std::vector<OwnRows>& sent);
  void addScaleOfTensor(Phase phase, const GemmOperand& reader, int rows);
  void addStep(Step step);

  const Graph& m_graph;
  const CopyNeeds& m_needs;
  PlanTensors& m_tensors;
  QuantizedCopies& m_copies;
  std::vector<Step>& m_steps;
  std::map<Key, NodeId> m_gathers;
  std::map<Key, std::vector<OwnRows>> m_rows;
};

}  // namespace fuseline
