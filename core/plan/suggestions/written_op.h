// WrittenOp: where the op of a node is written, in the pipeline or in a block, and edits of it there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/document.h"
#include "core/graph/graph.h"

#include <optional>
#include <string>

namespace fuseline {

struct WrittenOp {
  const DocumentBlock* section = nullptr;  // the pipeline, or a block
  std::string block;                       // its name; empty: the pipeline
  std::string instance;                    // the path of the instance that the node is of; empty: the pipeline
  std::string id;                          // within the section

  /// "op", or "op of block Layer".
  std::string text() const;
  /// The edit of the section as one of the document.
  Edit inPlace(Edit edit) const;
  /// Prefixed with "In every instance of block Layer.", except for an op of the pipeline.
  std::string cautionWith(const std::string& sentences) const;
  bool isBeside(const WrittenOp& other) const { return block == other.block && instance == other.instance; }
};

/// The op of the document that the node is, or is a part of, such as the GEMM of a Linear. Nothing: it is not in the
/// document.
std::optional<WrittenOp> ownerOp(const PipelineDocument& document, const Node& node);

/// Nothing: the node is a part of an op, such as the GEMM of a Linear.
std::optional<WrittenOp> writtenOp(const PipelineDocument& document, const Node& node);

}  // namespace fuseline
