// Stages in words, and the time that is left.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/run_progress.h"

#include "ui/widgets/translated.h"

#include <QHash>

#include <cmath>

namespace fuseline::ui {

namespace {

constexpr std::int64_t kPatienceMs = 3000;
constexpr int kLeastDone = 3;

QString secondsLeft(double seconds) {
  if (seconds < 60.0) return translated("%1 s left").arg(static_cast<int>(std::ceil(seconds)));
  return translated("%1 min left").arg(static_cast<int>(std::ceil(seconds / 60.0)));
}

}  // namespace

/// A GPU's first run in a process takes seconds before anything is measured: that is no hang.
QString stageText(const QString& stage, bool isGpu) {
  if (stage == QStringLiteral("preparing") && isGpu) return translated("starting CUDA, choosing kernels");
  static const QHash<QString, const char*> names = {
      {QStringLiteral("starting"), "starting"},     {QStringLiteral("preparing"), "preparing"},
      {QStringLiteral("warming up"), "warming up"}, {QStringLiteral("measuring"), "measuring"},
      {QStringLiteral("comparing"), "comparing"},   {QStringLiteral("measuring peaks"), "measuring the device's peaks"},
      {QStringLiteral("capturing"), "capturing"}};
  const auto name = names.find(stage);
  return name == names.end() ? stage : translated(*name);
}

QString progressText(const QString& stage, int done, int total, std::int64_t elapsedMs) {
  if (total <= 1) return stage;
  QString text = QStringLiteral("%1 %2/%3").arg(stage).arg(done).arg(total);
  if (done < kLeastDone || done >= total || elapsedMs < kPatienceMs) return text;
  const double secondsEach = static_cast<double>(elapsedMs) / 1e3 / done;
  return text + QStringLiteral(" · ") + secondsLeft(secondsEach * (total - done));
}

QString longestProgressText() {
  return progressText(stageText(QStringLiteral("warming up"), false), kLeastDone, 1000, 200 * kPatienceMs);
}

}  // namespace fuseline::ui
