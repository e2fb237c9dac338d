// Words for gains.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/gain_text.h"

#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <cmath>
#include <optional>

namespace fuseline::ui {

namespace {

/// "384 MiB of memory traffic and 2 launches"; empty for nothing.
QString savedText(const Saving& saving) {
  QStringList parts;
  if (saving.bytes != 0) parts.append(translated("%1 of memory traffic").arg(formatByteCount(saving.bytes)));
  if (saving.launches != 0) parts.append(counted(saving.launches, translated("launch"), translated("launches")));
  return parts.join(translated(" and "));
}

}  // namespace

QString predictedText(const Attempt& attempt, const DeviceModel& device) {
  return attempt.saving ? predictedText(*attempt.saving, device) : QString();
}

QString predictedText(const Saving& saving, const DeviceModel& device) {
  const QString saved = savedText(saving);
  if (saved.isEmpty()) return saved;
  const std::optional<double> ns = predictedNs(saving, device);
  if (!ns) return translated("Predicted to save %1.").arg(saved);
  return translated("Predicted to save %1: %2.").arg(formatDurationNs(*ns), saved);
}

QString predictionTip(const DeviceModel& device) {
  const QString least = translated("Predicted from the minimum memory traffic of each plan.");
  if (!device.isKnown()) return least + translated(" The predicted time needs the bandwidth that a run measures.");
  return least + translated(" Time at %1 GB/s, the bandwidth of %2.")
                     .arg(QString::number(device.bandwidthBytesPerSecond / 1e9, 'f', 1), toQt(device.source));
}

QString measuredText(const Attempt& attempt) {
  if (!attempt.measured) return QString();
  const MeasuredGain& gain = *attempt.measured;
  const auto ratio = [](double value) { return QString::number(value, 'f', 2); };
  const QString interval =
      translated("(%1×, 95 % interval %2 to %3) on %4")
          .arg(ratio(gain.speedup), ratio(gain.speedupLow), ratio(gain.speedupHigh), toQt(gain.device));
  if (!gain.isClear()) return translated("No significant difference measured %1.").arg(interval);
  const QString verb = gain.isFaster() ? translated("Measured: saves %1 %2.") : translated("Measured: costs %1 %2.");
  return verb.arg(formatDurationNs(std::abs(gain.gainNs)), interval);
}

QString shortGainText(const Attempt& attempt, const DeviceModel& device) {
  const auto text = [](bool isLess, const QString& amount) {
    return (isLess ? QStringLiteral("−") : QStringLiteral("+")) + amount;
  };
  if (attempt.measured && attempt.measured->isClear())
    return text(attempt.measured->isFaster(), formatDurationNs(std::abs(attempt.measured->gainNs)));
  if (attempt.measured) return QStringLiteral("~ %1×").arg(attempt.measured->speedup, 0, 'f', 2);
  if (!attempt.saving) return {};
  if (const std::optional<double> ns = predictedNs(*attempt.saving, device))
    return std::abs(*ns) < 0.5 ? QString() : text(*ns >= 0.0, formatDurationNs(std::abs(*ns)));
  return attempt.saving->bytes > 0 ? text(true, formatByteCount(attempt.saving->bytes)) : QString();
}

QStringList gainTexts(const FusionReport& report, const FusedOperation& entry) {
  const Attempt* attempt = attemptBehind(report, entry);
  if (!attempt) return {};
  QStringList texts = {predictedText(*attempt, report.device), measuredText(*attempt)};
  texts.removeAll(QString());
  return texts;
}

}  // namespace fuseline::ui
