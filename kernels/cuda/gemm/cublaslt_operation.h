// The descriptor of a cuBLASLt operation, and what owns a descriptor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/cublaslt_session.h"
#include "kernels/cuda/gemm/cublaslt_terms.h"

#include <memory>

namespace fuseline::cuda {

/// A descriptor with an owner.
template <class T>
using Owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
using OwnedLayout = Owned<cublasLtMatrixLayoutOpaque_t>;
using OwnedPreference = Owned<cublasLtMatmulPreferenceOpaque_t>;

class CublasLtOperation {
 public:
  /// Throws DeviceFault. session: must outlive this object.
  CublasLtOperation(const CublasLtSession& session, const CublasLtTerms& terms);

  cublasLtMatmulDesc_t get() const { return m_operation.get(); }

  /// Throws DeviceFault.
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) const {
    checkBlas(m_library, m_library.setOperation(get(), attribute, &value, sizeof(value)), "describe a product");
  }

 private:
  void setStandIns(const CublasLtTerms& terms) const;

  const CublasLt& m_library;
  Owned<cublasLtMatmulDescOpaque_t> m_operation;
};

/// A preference with the limits that all products have. Throws DeviceFault.
OwnedPreference makePreference(const CublasLt& library, const CublasLtTerms& terms);

}  // namespace fuseline::cuda
