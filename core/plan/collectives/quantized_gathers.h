// All-gathers that carry quantized values in place of the tensor that a GEMM reads quantized.
// Source: TransformerEngine gathers encoded values: of each direction when a GEMM needs it, with the scales of blocks;
// columnwise values that are stored transposed arrive rank by rank, and are put beside each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/quantized_copies.h"

#include <map>
#include <string>
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
  /// Why the gather of a tensor that is quantized afterwards is in high precision; empty: it is none.
  std::string noteOf(const FusedOperation& entry, Phase phase) const;
  bool isGathered(const GemmOperand& reader) const { return m_gathers.contains({reader.node, reader.type}); }
  /// Quantizes the rows of this rank, gathers the encoded values, and makes the quantized tensors of them that the
  /// reader's GEMMs of this pass need. isGathered(reader) holds.
  void addSteps(Phase phase, const GemmOperand& reader);
  /// In front of a backward entry: gathers the columnwise tensors of its inputs. Until then a rank keeps its own rows.
  void addRegathers(const FusedOperation& entry);
  /// In front of a GEMM that reads the columnwise tensor: puts what the ranks sent of it beside each other.
  void orderColumns(Phase phase, const GemmOperand& reader);

 private:
  /// A quantized tensor of the rows of this rank, which is not sent yet.
  struct OwnRows {
    Usage direction;
    int tensor;
  };
  using Key = std::pair<NodeId, TensorType>;  // a tensor's reader
  struct SentColumns {
    int sent;
    int rows;  // of this rank
  };

  void findForward(NodeId gather);
  void findBackward(const FusionReport& report, NodeId gather);
  void addIfSendable(const GemmOperand& reader, NodeId gather, ValueId rows);
  /// no has the reason why the gather is in high precision.
  Verdict canSend(const GemmOperand& reader, const TensorSpec& rows) const;

  const TensorQuantizers& quantizersOf(const GemmOperand& reader) const;
  std::vector<Usage> quantizedDirections(const GemmOperand& reader) const;
  int rowsOfRank(Phase phase, NodeId gather);
  void quantizeRows(Phase phase, const GemmOperand& reader, int source);
  std::vector<std::string> amaxNames(const GemmOperand& reader) const;
  std::vector<int> amaxesOfAllRanks(Phase phase, const GemmOperand& reader, int source);
  const TensorSpec& wholeOf(const GemmOperand& reader) const;
  void markReloaded(Phase phase, const GemmOperand& reader, int tensor);
  /// The tensor to which the ranks send their rows.
  int destinationOf(const GemmOperand& reader, const OwnRows& rows);
  void gatherRows(Phase phase, const GemmOperand& reader, const std::vector<OwnRows>& sent);
  void addScaleOfTensor(Phase phase, const GemmOperand& reader, int rows);
  void addStep(Step step);

  const Graph& m_graph;
  const CopyNeeds& m_needs;
  PlanTensors& m_tensors;
  QuantizedCopies& m_copies;
  std::vector<Step>& m_steps;
  std::map<Key, NodeId> m_gathers;
  std::map<std::pair<NodeId, TensorType>, std::string> m_notes;  // by gather, and by what it gathers
  std::map<Key, std::vector<OwnRows>> m_rows;
  std::map<Key, SentColumns> m_unordered;
};

}  // namespace fuseline
