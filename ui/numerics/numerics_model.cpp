// Errors as a table.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/numerics_model.h"

#include "ui/theme/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fuseline::ui {

namespace {

/// The three buckets with the largest differences; in one line.
QString histogramText(const ErrorNumerics& error) {
  constexpr qsizetype kMostBuckets = 3;
  QStringList parts;
  for (std::size_t bucket = 0; bucket < error.ulpHistogram.size(); ++bucket) {
    const std::int64_t count = error.ulpHistogram[bucket];
    if (count == 0) continue;
    const bool isLast = bucket + 1 == error.ulpHistogram.size();
    const QString limit =
        bucket == 0 ? QStringLiteral("0.5") : QString::number(1LL << (isLast ? bucket - 2 : bucket - 1));
    parts.append(NumericsModel::tr(isLast ? "more than %1: %2" : "up to %1: %2").arg(limit).arg(count));
  }
  return parts.last(std::min(parts.size(), kMostBuckets)).join(QStringLiteral(", "));
}

QString cosineText(const ErrorNumerics& error) { return QString::number(std::max(0.0, 1.0 - error.cosine), 'g', 2); }

constexpr double kMostElements = 0.99;

QString ulpText(const ErrorNumerics& error) {
  const double ulps = error.ulpsOf(kMostElements);
  return std::isfinite(ulps) ? QString::number(ulps) : QStringLiteral("> 512");
}

/// "0.2 %, pass 0.12"
QString fusionText(const ErrorNumerics& fusion) {
  const QString error = formatError(fusion.rmsRelative);
  return fusion.isWithin() && fusion.rmsRelative == 0.0 ? error
                                                        : QStringLiteral("%1, %2").arg(error, verdictText(fusion));
}

/// For sorting; what is not finite is the worst.
double shareOf(const ErrorNumerics* error) {
  if (!error) return -1.0;
  return error->isFinite ? error->toleranceShare : std::numeric_limits<double>::infinity();
}

}  // namespace

QString verdictText(const ErrorNumerics& error) {
  if (!error.isFinite) return NumericsModel::tr("FAIL");
  const QString share = QString::number(error.toleranceShare, 'f', 2);
  return error.isWithin() ? NumericsModel::tr("pass %1").arg(share) : NumericsModel::tr("FAIL %1").arg(share);
}

std::map<std::string, double> errorsByOwner(const NumericsReport& report) {
  std::map<std::string, double> errors;
  for (const ErrorNumerics& error : report.errors) {
    if (error.owner.empty()) continue;
    double& worst = errors[error.owner];
    worst = std::max(worst, error.rmsRelative);
  }
  return errors;
}

double heatShare(double rmsError) {
  if (rmsError <= kCoolestError) return 0.0;
  return std::min(1.0, 1.0 - std::log10(rmsError) / std::log10(kCoolestError));
}

QString formatError(double rmsError) {
  if (rmsError == 0.0) return NumericsModel::tr("exact");
  const double percent = 100.0 * rmsError;
  return QStringLiteral("%1 %").arg(percent < 10.0 ? QString::number(percent, 'g', 2)
                                                   : QString::number(percent, 'f', 0));
}

void NumericsModel::setReport(const NumericsReport& report) {
  beginResetModel();
  m_rows.clear();
  for (const ErrorNumerics& error : report.errors) {
    Row row{.error = error, .fusion = std::nullopt};
    const auto fused = std::ranges::find(report.fusionErrors, error.name, &ErrorNumerics::name);
    if (fused != report.fusionErrors.end()) row.fusion = *fused;
    m_rows.push_back(std::move(row));
  }
  endResetModel();
}

int NumericsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int NumericsModel::columnCount(const QModelIndex&) const { return ColumnCount; }

QVariant NumericsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
  if (role == Qt::TextAlignmentRole) return static_cast<int>(section == TensorColumn ? Qt::AlignLeft : Qt::AlignRight);
  if (role == Qt::DisplayRole)
    return std::array{
        tr("Tensor"),    tr("RMS error"),      tr("Max error"), tr("1 − cosine"), tr("99th percentile (ulp)"),
        tr("Tolerance"), tr("Fused ↔ unfused")}[static_cast<std::size_t>(section)];
  if (role != Qt::ToolTipRole) return {};
  return std::array{tr("Outputs and gradients of the steps"),
                    tr("RMS of the differences from float32, relative to the RMS of the values.\nColor, here and on "
                       "nodes: dark for 0.01 % or less, bright for 100 %"),
                    tr("Largest difference from float32"),
                    tr("1 minus the cosine similarity with float32"),
                    tr("99 % of the elements differ from float32 by at most this many ulp (of the tensor's dtype)"),
                    tr("Largest difference from float32, as a fraction of the tolerance; passes if it is 1 or less"),
                    tr("Difference between the fused and the unfused plan: RMS, and fraction of the tolerance. –: the "
                       "fused plan does not store this tensor")}[static_cast<std::size_t>(section)];
}

QVariant NumericsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Row& row = m_rows[static_cast<std::size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole: return text(row, index.column());
    case Qt::TextAlignmentRole:
      return static_cast<int>((index.column() == TensorColumn ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case Qt::ToolTipRole: return tip(row);
    case OwnerRole: return toQt(row.error.owner);
    case SortRole: return sortKey(row, index.column());
    case IsWithinRole: {
      const ErrorNumerics* judged = judgedIn(row, index.column());
      return judged ? QVariant(judged->isWithin()) : QVariant();
    }
    case HeatRole: return index.column() == RmsColumn ? QVariant(heatShare(row.error.rmsRelative)) : QVariant();
    default: return {};
  }
}

QString NumericsModel::text(const Row& row, int column) const {
  switch (column) {
    case TensorColumn: return toQt(row.error.name);
    case RmsColumn: return row.error.isFinite ? formatError(row.error.rmsRelative) : tr("NaN or ∞");
    case MaxColumn: return QString::number(row.error.maxAbsolute, 'g', 3);
    case CosineColumn: return cosineText(row.error);
    case UlpColumn: return ulpText(row.error);
    case VerdictColumn: return verdictText(row.error);
    case FusedColumn: return row.fusion ? fusionText(*row.fusion) : QStringLiteral("–");
    default: return {};
  }
}

QVariant NumericsModel::sortKey(const Row& row, int column) const {
  switch (column) {
    case RmsColumn: return row.error.rmsRelative;
    case MaxColumn: return row.error.maxAbsolute;
    case CosineColumn: return 1.0 - row.error.cosine;
    case UlpColumn: return row.error.ulpsOf(kMostElements);
    case VerdictColumn: return shareOf(&row.error);
    case FusedColumn: return shareOf(judgedIn(row, column));
    default: return toQt(row.error.name);
  }
}

const ErrorNumerics* NumericsModel::judgedIn(const Row& row, int column) {
  if (column == VerdictColumn) return &row.error;
  return column == FusedColumn && row.fusion ? &*row.fusion : nullptr;
}

QString NumericsModel::tip(const Row& row) const {
  QString text = tr("<b>%1</b><br>Differences from float32, number of elements by ulp: %2")
                     .arg(toQt(row.error.name).toHtmlEscaped(), histogramText(row.error));
  if (row.fusion)
    text +=
        tr("<br>Fused vs. unfused plan: largest difference %1, 1 − cosine %2<br>Number of elements by ulp: %3")
            .arg(QString::number(row.fusion->maxAbsolute, 'g', 3), cosineText(*row.fusion), histogramText(*row.fusion));
  return text;
}

}  // namespace fuseline::ui
