// The op library: every op by name, in one visible order (core/ops/CMakeLists.txt).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"
#include "core/support/result.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

class OperationCatalog {
 public:
  /// Errors, with a sentence that names the op: duplicate names, half of the compute and context pair, no infer, a
  /// composite with its own mathematics, an op with `specialise` that rejects its default attributes, a port for counts
  /// without a function that draws them.
  static Result<OperationCatalog> create(std::vector<FusibleOperation> operations);
  /// The ops of this build, followed by user-defined ones. Errors: as create(). Lowering takes the catalog as
  /// LoweringOptions::catalog; it must outlive the graphs made with it.
  static Result<OperationCatalog> withBuiltins(std::vector<FusibleOperation> own);

  /// nullptr when there is none.
  const FusibleOperation* find(std::string_view name) const;
  /// The known name with the smallest edit distance, for "did you mean"; empty when none is near.
  std::string nearestName(std::string_view name) const;
  const std::vector<std::unique_ptr<const FusibleOperation>>& operations() const { return m_operations; }

 private:
  std::vector<std::unique_ptr<const FusibleOperation>> m_operations;
};

/// The ops this build ships, built once.
const OperationCatalog& builtinOperations();

}  // namespace fuseline
