// Formatting of values by unit, in one place, so that every view writes the same number the same way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attributes.h"
#include "core/profile/efficiency.h"
#include "core/profile/stats.h"
#include "core/support/json.h"
#include "core/tensor/tensor_spec.h"

#include <QDateTime>
#include <QString>

#include <string>
#include <string_view>

namespace fuseline::ui {

QString toQt(std::string_view text);
QStringList toQt(const std::vector<std::string>& texts);

/// "4096 × 1024"; "scalar" for an empty shape.
QString formatShape(const Shape& shape);
/// "4096 × 1024 bf16".
QString formatSpec(const TensorSpec& spec);
/// "12.3 ms". Nothing for no samples.
QString formatDurationNs(double durationNs);
/// "12.3 ms ± 1 %": the median and half the interquartile range, which one sample does not have.
QString formatTiming(const SampleStats& stats);
/// "2026-11-25 15:00:00 IST": with the zone, for tooltips.
QString formatLocalTime(const QDateTime& time);
/// "2026-11-25 09:30:00 UTC", or without seconds, of a run record as the time on this machine, without the zone;
/// another text as it is.
QString localTimeOf(std::string_view utc);
/// The same with the zone.
QString zonedTimeOf(std::string_view utc);
/// "1.43×", with "~" before it when the difference is within the noise.
QString formatSpeedup(const RatioStats& speedup);
/// "8.00 MiB"; an en dash for zero.
QString formatByteCount(std::int64_t bytes);
/// "1.23", "12.3", "123": three digits where there are no more before the point.
QString formatThreeDigits(double value);
/// A time in the unit of its column, without the unit: three digits, and no more than three after the point, because
/// the rounds of a run scatter by more than that.
QString formatColumnTime(double durationNs, double unitNs);
/// "12.3 GB/s", of 1e9 bytes.
QString formatBandwidth(double gbps);
/// "1.23 TFLOP/s".
QString formatFlopRate(double gflops);
/// "12.3 GB/s · 1.23 TFLOP/s · 1.70× its roofline limit (memory)", with the known parts only.
QString formatEfficiency(const Efficiency& efficiency);
/// "3"; an en dash for zero.
QString formatCount(std::int64_t count);

/// "1 launch", "3 launches": the number with the word that fits it.
QString counted(qsizetype count, const QString& one, const QString& many);

/// A JSON value of the document as the text of an editor: strings without quotes, lists as "H, 4*H".
QString editorText(const Json& value);
/// The inverse: numbers become numbers, everything else stays an expression. Empty text is null.
Json jsonFromEditor(const QString& text, AttributeType type);
/// "H, 4*H" or "[H, 4*H]" as a JSON list. Commas inside parentheses do not separate.
Json listFromEditor(const QString& text);

}  // namespace fuseline::ui
