// Finds the copies that readers make of a tensor, or the tensor itself.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/measured_tensor.h"

#include "core/plan/capturable_tensors.h"
#include "core/quant/apply_recipe.h"
#include "core/quant/attention_quantizers.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

QString amaxText(double amax) { return translated("amax %1").arg(formatThreeDigits(amax)); }

}  // namespace

MeasuredTensors::MeasuredTensors(const Session& session) {
  const auto& numerics = session.results().lastNumerics();
  if (numerics && !numerics->isStale)
    for (const CopyNumerics& copy : numerics->report.copies) m_copies.emplace(copy.name, &copy);
  const auto& capture = session.results().lastCapture();
  if (capture && !capture->isStale) m_capture = &*capture;
}

/// By whichever reader makes one.
const CopyNumerics* MeasuredTensors::copyOf(const Graph& graph, const Value& value) const {
  for (const Use& use : value.uses)
    for (const char* copy : {"@rowwise", "@columnwise"}) {
      const bool isOfAttention = isQuantizedAttention(graph.node(use.node));
      const auto part = isOfAttention ? std::optional<std::int64_t>(use.slot) : std::nullopt;
      const auto found = m_copies.find(quantizedName(graph.node(use.node), TensorType::Input, part) + copy);
      if ((use.slot == 0 || isOfAttention) && found != m_copies.end()) return found->second;
    }
  return nullptr;
}

QString MeasuredTensors::textOf(const Graph& graph, const Value& value) const {
  if (const CopyNumerics* copy = copyOf(graph, value))
    return translated("%1 · %2 % underflow as %3")
        .arg(amaxText(copy->losses.amax), formatThreeDigits(100 * copy->losses.underflowShare), toQt(copy->format));
  const TensorSummary* summary = m_capture ? m_capture->find(capturableName(graph, value)) : nullptr;
  const bool isFinite = summary && summary->statistics.finite() > 0;
  return isFinite ? amaxText(std::max(std::abs(summary->statistics.min), std::abs(summary->statistics.max)))
                  : QString();
}

}  // namespace fuseline::ui
