// Nesting of scopes.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/quantization_scope.h"

#include <utility>

namespace fuseline {

void QuantizationScope::enter() {
  if (m_depth++ == 0) m_isFirst = true;
}

bool QuantizationScope::takeFirst() { return isActive() && std::exchange(m_isFirst, false); }

bool QuantizationScope::exit(ScopeEnd end) { return --m_depth == 0 && end.needsGradients && !end.isCapturing; }

}  // namespace fuseline
