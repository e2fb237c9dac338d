// Formatting of values by unit.
// SPDX-License-Identifier: Apache-2.0
#include "ui/theme/format.h"

#include "core/support/text.h"

#include <QCoreApplication>
#include <QLocale>
#include <QStringList>

#include <cmath>

namespace fuseline::ui {

namespace {

Json scalarFromEditor(const QString& text, AttributeType type) {
  bool isNumber = false;
  const qlonglong integer = text.toLongLong(&isNumber);
  if (isNumber) return static_cast<std::int64_t>(integer);
  const double real = QLocale::c().toDouble(text, &isNumber);
  if (isNumber && type == AttributeType::Real) return real;
  return text.toStdString();
}

QStringList splitAtCommas(const QString& text) {
  QStringList parts = {QString()};
  int depth = 0;
  for (const QChar c : text) {
    if (c == u'(') ++depth;
    if (c == u')') --depth;
    if (c == u',' && depth <= 0) {
      parts.append(QString());
    } else {
      parts.last().append(c);
    }
  }
  return parts;
}

}  // namespace

QString toQt(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

QStringList toQt(const std::vector<std::string>& texts) {
  QStringList list;
  for (const std::string& text : texts) list.append(toQt(text));
  return list;
}

QString formatShape(const Shape& shape) {
  if (shape.empty()) return QCoreApplication::translate("Format", "scalar");
  QStringList extents;
  for (const std::int64_t extent : shape) extents.append(QString::number(extent));
  return extents.join(QStringLiteral(" × "));
}

QString formatSpec(const TensorSpec& spec) {
  return QStringLiteral("%1 %2").arg(formatShape(spec.shape), toQt(dtypeName(spec.dtype)));
}

QString formatDurationNs(double durationNs) {
  return toQt(formatDuration(durationNs)).replace(QStringLiteral("us"), QStringLiteral("µs"));
}

QString formatTiming(const SampleStats& stats) {
  if (stats.count == 0) return QString();
  if (!stats.hasSpread()) return formatDurationNs(stats.median);
  const QString spread = QString::number(stats.spreadPercent(), 'f', stats.spreadPercent() < 9.95 ? 1 : 0);
  return QStringLiteral("%1 ± %2 %").arg(formatDurationNs(stats.median), spread);
}

namespace {

enum class Zone { Untold, Told };

/// Run records of the command line have no seconds.
constexpr const char* kTimeFormats[] = {"yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd HH:mm"};

/// On the clock of this machine, in the form that the text has; as it is where it has none of them.
QString timeFromUtc(std::string_view utc, Zone zone) {
  for (const char* format : kTimeFormats) {
    QDateTime time = QDateTime::fromString(toQt(utc), QString::fromLatin1(format) + QStringLiteral(" 'UTC'"));
    if (!time.isValid()) continue;
    time.setTimeSpec(Qt::UTC);
    const QDateTime here = time.toLocalTime();
    const QString text = here.toString(QString::fromLatin1(format));
    return zone == Zone::Told ? text + u' ' + here.timeZoneAbbreviation() : text;
  }
  return toQt(utc);
}

}  // namespace

QString formatLocalTime(const QDateTime& time) {
  return time.toString(QString::fromLatin1(kTimeFormats[0])) + u' ' + time.timeZoneAbbreviation();
}

QString localTimeOf(std::string_view utc) { return timeFromUtc(utc, Zone::Untold); }

QString zonedTimeOf(std::string_view utc) { return timeFromUtc(utc, Zone::Told); }

QString formatSpeedup(const RatioStats& speedup) {
  return QStringLiteral("%1%2×").arg(speedup.isSignificant() ? QString() : QStringLiteral("~ "),
                                     QString::number(speedup.median, 'f', 2));
}

QString formatByteCount(std::int64_t bytes) { return bytes == 0 ? QStringLiteral("–") : toQt(formatBytes(bytes)); }

QString formatThreeDigits(double value) {
  return QString::number(value, 'f', value < 10.0 ? 2 : value < 100.0 ? 1 : 0);
}

QString formatColumnTime(double durationNs, double unitNs) {
  const double value = durationNs / unitNs;
  return std::abs(value) < 0.9995 ? QString::number(value, 'f', 3) : formatThreeDigits(value);
}

QString formatBandwidth(double gbps) { return QStringLiteral("%1 GB/s").arg(formatThreeDigits(gbps)); }

QString formatFlopRate(double gflops) { return toQt(formatFlops(gflops * 1e9)) + QStringLiteral("/s"); }

QString formatEfficiency(const Efficiency& efficiency) {
  QStringList parts;
  if (efficiency.gbps() > 0.0) parts.append(formatBandwidth(efficiency.gbps()));
  if (efficiency.gflops() > 0.0) parts.append(formatFlopRate(efficiency.gflops()));
  if (efficiency.timesFromRoofline() > 0.0)
    parts.append(QCoreApplication::translate("Format", "%1× its roofline limit (%2)")
                     .arg(formatThreeDigits(efficiency.timesFromRoofline()), toQt(efficiency.boundName())));
  return parts.join(QStringLiteral(" · "));
}

QString formatCount(std::int64_t count) { return count == 0 ? QStringLiteral("–") : QString::number(count); }

QString counted(qsizetype count, const QString& one, const QString& many) {
  return QStringLiteral("%1 %2").arg(count).arg(count == 1 ? one : many);
}

QString editorText(const Json& value) {
  if (value.is_null()) return QString();
  if (value.is_string()) return toQt(value.get<std::string>());
  if (!value.is_array()) return toQt(value.dump());
  QStringList parts;
  for (const Json& item : value) parts.append(editorText(item));
  return parts.join(QStringLiteral(", "));
}

Json jsonFromEditor(const QString& text, AttributeType type) {
  const QString trimmed = text.trimmed();
  if (trimmed.isEmpty()) return nullptr;
  switch (type) {
    case AttributeType::IntegerList: return listFromEditor(trimmed);
    case AttributeType::Text: return trimmed.toStdString();
    case AttributeType::Boolean: return trimmed == QStringLiteral("true");
    default: return scalarFromEditor(trimmed, type);
  }
}

Json listFromEditor(const QString& text) {
  QString inner = text.trimmed();
  if (inner.startsWith(u'[') && inner.endsWith(u']')) inner = inner.mid(1, inner.size() - 2);
  Json list = Json::array();
  if (inner.trimmed().isEmpty()) return list;
  for (const QString& part : splitAtCommas(inner)) {
    list.push_back(scalarFromEditor(part.trimmed(), AttributeType::Integer));
  }
  return list;
}

}  // namespace fuseline::ui
