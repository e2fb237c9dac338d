// Errors as a table.
// SPDX-License-Identifier: Apache-2.0
#include "ui/models/numerics_model.h"

#include "ui/theme/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace fuseline::ui {

namespace {

QString histogramText(const ErrorNumerics& error) {
  QStringList parts;
  for (std::size_t bucket = 0; bucket < error.ulpHistogram.size(); ++bucket) {
    const std::int64_t count = error.ulpHistogram[bucket];
    if (count == 0) continue;
    const bool isLast = bucket + 1 == error.ulpHistogram.size();
    const QString limit =
        bucket == 0 ? QStringLiteral("0.5") : QString::number(1LL << (isLast ? bucket - 2 : bucket - 1));
    parts.append(NumericsModel::tr(isLast ? "more than %1: %2" : "up to %1: %2").arg(limit).arg(count));
  }
  return parts.join(QStringLiteral("<br>"));
}

}  // namespace

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
    Row row{.error = error, .fusedRms = std::nullopt};
    const auto fused = std::ranges::find(report.fusionErrors, error.name, &ErrorNumerics::name);
    if (fused != report.fusionErrors.end()) row.fusedRms = fused->rmsRelative;
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
    return std::array{tr("Tensor"), tr("RMS error"), tr("Max error"), tr("1 − cosine"),
                      tr("Fused ↔ unfused")}[static_cast<std::size_t>(section)];
  if (role != Qt::ToolTipRole) return {};
  return std::array{
      tr("What a step makes: outputs and gradients"),
      tr("Against float32: rms of the differences over the rms of the values. The colour, here and on the nodes, is "
         "dark for 0.01 % and less and bright for 100 %, in every pipeline"),
      tr("Against float32: the largest difference"), tr("Against float32: of the angle between both tensors"),
      tr("Rms of the differences between the fused and the unfused plan; a dash where fusion leaves no "
         "such tensor")}[static_cast<std::size_t>(section)];
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
    case HeatRole: return index.column() == RmsColumn ? QVariant(heatShare(row.error.rmsRelative)) : QVariant();
    default: return {};
  }
}

QString NumericsModel::text(const Row& row, int column) const {
  switch (column) {
    case TensorColumn: return toQt(row.error.name);
    case RmsColumn: return row.error.isFinite ? formatError(row.error.rmsRelative) : tr("NaN or ∞");
    case MaxColumn: return QString::number(row.error.maxAbsolute, 'g', 3);
    case CosineColumn: return QString::number(std::max(0.0, 1.0 - row.error.cosine), 'g', 2);
    case FusedColumn: return row.fusedRms ? formatError(*row.fusedRms) : QStringLiteral("–");
    default: return {};
  }
}

QVariant NumericsModel::sortKey(const Row& row, int column) const {
  switch (column) {
    case RmsColumn: return row.error.rmsRelative;
    case MaxColumn: return row.error.maxAbsolute;
    case CosineColumn: return 1.0 - row.error.cosine;
    case FusedColumn: return row.fusedRms.value_or(-1.0);
    default: return toQt(row.error.name);
  }
}

QString NumericsModel::tip(const Row& row) const {
  return tr("<b>%1</b><br>Elements by their distance from float32, in units in the last place:<br>%2")
      .arg(toQt(row.error.name).toHtmlEscaped(), histogramText(row.error));
}

}  // namespace fuseline::ui
