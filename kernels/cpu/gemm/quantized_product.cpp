// A GEMM is not divided into rows here: its threads share panels of all of them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/quantized_product.h"

#include "kernels/cpu/workspace.h"

#include <omp.h>

#include <algorithm>
#include <utility>

namespace fuseline::cpu {

std::optional<QuantizedProduct> QuantizedProduct::ifAny(const CompileRequest& request) {
  std::optional<RowCopies> copies = rowCopiesOf(request);
  if (!copies) return std::nullopt;
  return QuantizedProduct(std::move(*copies), request.settings.threads);
}

std::size_t QuantizedProduct::workspaceBytes() const {
  return workspacePart(static_cast<std::size_t>(m_copies.spec().bytes()));
}

void QuantizedProduct::run(Pointers pointers, std::byte* workspace, const std::function<void(std::byte* c)>& multiply) {
  const RowSink& sink = m_copies.begin(pointers, nullptr);
  std::byte* const result = sink.memory ? sink.memory : workspace;
  multiply(result);
  const std::int64_t rows = m_copies.spec().rows();
#pragma omp parallel for num_threads(m_threads) if (m_threads > 1)
  for (std::int64_t first = 0; first < rows; first += sink.blockRows)
    sink.take(omp_get_thread_num(), first, std::min(sink.blockRows, rows - first), result + first * sink.rowBytes);
  m_copies.finish();
}

}  // namespace fuseline::cpu
