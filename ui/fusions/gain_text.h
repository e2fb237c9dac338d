// The gain of a fusion in words: predicted (and labeled so), and measured by a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

#include <QString>
#include <QStringList>

namespace fuseline::ui {

/// "Predicted to save 12.3 µs: 384 MiB of memory traffic and 2 launches." Without the time where no run told how fast
/// the device is; empty where nothing is predicted.
QString predictedText(const Attempt& attempt, const DeviceModel& device);
QString predictedText(const Saving& saving, const DeviceModel& device);
/// Where the prediction comes from.
QString predictionTip(const DeviceModel& device);
/// "Measured: saves 10.1 µs (1.04×, 95 % interval 1.02 to 1.06) on AMD EPYC 9755." Empty where nothing was measured.
QString measuredText(const Attempt& attempt);

/// "−10.1 µs": the measured gain, "~ 0.98×" where it is within the noise; not measured, the predicted time or traffic.
/// Empty: neither is known.
QString shortGainText(const Attempt& attempt, const DeviceModel& device);

/// Both, as far as they are there, for an entry of the plan.
QStringList gainTexts(const FusionReport& report, const FusedOperation& entry);

}  // namespace fuseline::ui
