// Formats verdicts and losses.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/numerics_text.h"

#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <cmath>

namespace fuseline::ui {

QString verdictSentence(const QString& what, const NumericsVerdict& verdict) {
  if (verdict.worst.empty()) return {};
  const QString result = verdict.isWithin ? translated("pass") : translated("FAIL");
  if (std::isinf(verdict.toleranceShare))
    return translated("%1: %2, beyond any tolerance (%3)").arg(what, result, toQt(verdict.worst));
  return translated("%1: %2, at most %3 of the tolerance (%4)")
      .arg(what, result, QString::number(verdict.toleranceShare, 'f', 2), toQt(verdict.worst));
}

QString summaryOf(const NumericsReport& report) {
  QStringList parts = {verdictSentence(translated("vs. float32"), verdictOf(report.errors)),
                       verdictSentence(translated("fused vs. unfused"), verdictOf(report.fusionErrors))};
  parts.removeAll(QString());
  return parts.isEmpty() ? translated("nothing to compare") : parts.join(QStringLiteral(" · "));
}

QString scaleText(const QuantizationLosses& losses) {
  const QString least = QString::number(losses.scaleInvMin, 'g', 3);
  return losses.scaleInvMin == losses.scaleInvMax
             ? least
             : QStringLiteral("%1 … %2").arg(least, QString::number(losses.scaleInvMax, 'g', 3));
}

QString lossShareText(double share) {
  return share == 0.0 ? QStringLiteral("0") : QStringLiteral("%1 %").arg(QString::number(100.0 * share, 'g', 2));
}

QString noiseText(const QuantizationLosses& losses) {
  return std::isfinite(losses.signalToNoise) ? translated("%1 dB").arg(losses.signalToNoise, 0, 'f', 1)
                                             : translated("exact");
}

std::set<std::string> passesOf(std::string_view tensor) {
  const bool isGradient = tensor.starts_with("grad.") || tensor.find(".grad_output") != std::string_view::npos;
  return {isGradient ? "backward" : "forward"};
}

}  // namespace fuseline::ui
