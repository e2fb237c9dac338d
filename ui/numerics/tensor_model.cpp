// Cells of a captured tensor.
// SPDX-License-Identifier: Apache-2.0
#include "ui/numerics/tensor_model.h"

#include "core/tensor/tensor.h"
#include "ui/theme/format.h"

#include <QFont>

#include <algorithm>
#include <cmath>
#include <vector>

namespace fuseline::ui {

namespace {

/// Elements that are decoded at a time where many are.
constexpr std::int64_t kBlock = 4096;

QString numberText(double value, int digits) {
  if (std::isnan(value)) return QStringLiteral("NaN");
  if (std::isinf(value)) return value > 0 ? QStringLiteral("∞") : QStringLiteral("−∞");
  return QString::number(value, 'g', digits);
}

/// Digits that tell all values of a dtype apart.
int exactDigits(DType dtype) {
  switch (dtype) {
    case DType::F32: return 9;
    case DType::I64: return 19;
    default: return 6;
  }
}

}  // namespace

TensorModel::TensorModel(const Theme& theme, QObject* parent) : QAbstractTableModel(parent), m_theme(theme) {}

void TensorModel::show(const TensorSummary& summary, std::shared_ptr<const CapturedFile> file) {
  beginResetModel();
  m_summary = summary;
  m_file = std::move(file);
  m_bytes = m_file->bytesOf(summary.name);
  endResetModel();
}

bool TensorModel::shows(const TensorSummary& summary, const std::shared_ptr<const CapturedFile>& file) const {
  return m_file && m_file == file && m_summary.name == summary.name;
}

void TensorModel::clear() {
  beginResetModel();
  m_summary = {};
  m_bytes = {};
  m_file.reset();
  endResetModel();
}

void TensorModel::setShading(Shading shading) {
  m_shading = shading;
  if (rowCount() > 0 && columnCount() > 0)
    Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1), {Qt::BackgroundRole, Qt::ForegroundRole});
}

std::int64_t TensorModel::numColumns() const {
  const TensorSpec& spec = m_summary.spec;
  return isVector() ? std::min<std::int64_t>(kVectorColumns, spec.numElements()) : spec.cols();
}

std::int64_t TensorModel::numRows() const {
  const std::int64_t columns = numColumns();
  return columns == 0 ? 0 : (m_summary.spec.numElements() + columns - 1) / columns;
}

bool TensorModel::isCutOff() const { return numRows() > kMaxRows || numColumns() > kMaxColumns; }

int TensorModel::rowCount(const QModelIndex& parent) const {
  if (parent.isValid() || m_bytes.empty()) return 0;
  return static_cast<int>(std::min<std::int64_t>(numRows(), kMaxRows));
}

int TensorModel::columnCount(const QModelIndex& parent) const {
  if (parent.isValid() || m_bytes.empty()) return 0;
  return static_cast<int>(std::min<std::int64_t>(numColumns(), kMaxColumns));
}

std::int64_t TensorModel::elementAt(const QModelIndex& index) const {
  if (!index.isValid()) return -1;
  const std::int64_t element = index.row() * numColumns() + index.column();
  return element < m_summary.spec.numElements() ? element : -1;
}

QModelIndex TensorModel::indexOf(std::int64_t element) const {
  if (element < 0 || m_bytes.empty()) return {};
  const std::int64_t row = element / numColumns();
  const std::int64_t column = element % numColumns();
  if (row >= rowCount() || column >= columnCount()) return {};
  return index(static_cast<int>(row), static_cast<int>(column));
}

double TensorModel::valueOf(std::int64_t element) const {
  double value = 0.0;
  const auto size = static_cast<std::size_t>(sizeBytes(m_summary.spec.dtype));
  decode(m_bytes.data() + static_cast<std::size_t>(element) * size, m_summary.spec.dtype, std::span(&value, 1));
  return value;
}

QString TensorModel::placeOf(std::int64_t element) const {
  QStringList places;
  const Shape& shape = m_summary.spec.shape;
  for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
    places.prepend(QString::number(element % *extent));
    element /= *extent;
  }
  return QStringLiteral("[%1]").arg(places.join(QStringLiteral(", ")));
}

std::optional<std::int64_t> TensorModel::nextNonFinite(std::int64_t element) const {
  const TensorStatistics& statistics = m_summary.statistics;
  if (m_bytes.empty() || statistics.nans + statistics.infinities == 0) return std::nullopt;
  const auto behind = firstNonFinite(element + 1, m_summary.spec.numElements());
  return behind ? behind : firstNonFinite(0, element + 1);
}

std::optional<std::int64_t> TensorModel::firstNonFinite(std::int64_t begin, std::int64_t end) const {
  const auto size = static_cast<std::size_t>(sizeBytes(m_summary.spec.dtype));
  std::vector<double> values;
  for (std::int64_t first = begin; first < end; first += kBlock) {
    values.resize(static_cast<std::size_t>(std::min(kBlock, end - first)));
    decode(m_bytes.data() + static_cast<std::size_t>(first) * size, m_summary.spec.dtype, values);
    const auto found = std::ranges::find_if(values, [](double value) { return !std::isfinite(value); });
    if (found != values.end()) return first + (found - values.begin());
  }
  return std::nullopt;
}

// -------------------------------------------------------------------------------------------------------------- cells

Qt::ItemFlags TensorModel::flags(const QModelIndex& index) const {
  return elementAt(index) < 0 ? Qt::NoItemFlags : Qt::ItemIsEnabled | Qt::ItemIsSelectable;
}

QVariant TensorModel::data(const QModelIndex& index, int role) const {
  const std::int64_t element = elementAt(index);
  if (element < 0) return {};
  switch (role) {
    case Qt::DisplayRole: return text(element);
    case Qt::ToolTipRole: return tip(element);
    case Qt::AccessibleTextRole: return tr("%1 at %2").arg(text(element), placeOf(element));
    case Qt::TextAlignmentRole: return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::BackgroundRole: return ground(valueOf(element));
    case Qt::ForegroundRole: return ink(valueOf(element));
    case Qt::FontRole: return std::isfinite(valueOf(element)) ? QVariant() : scaledFont(1.0, QFont::Bold);
    default: return {};
  }
}

QString TensorModel::text(std::int64_t element) const {
  return numberText(valueOf(element), m_summary.spec.dtype == DType::I64 ? exactDigits(DType::I64) : 5);
}

QString TensorModel::tip(std::int64_t element) const {
  return QStringLiteral("%1 = %2 · %3")
      .arg(placeOf(element), numberText(valueOf(element), exactDigits(m_summary.spec.dtype)), codeOf(element));
}

/// "bf16 0x3fc0".
QString TensorModel::codeOf(std::int64_t element) const {
  const auto size = static_cast<std::size_t>(sizeBytes(m_summary.spec.dtype));
  const std::span<const std::byte> bytes = m_bytes.subspan(static_cast<std::size_t>(element) * size, size);
  QString code;
  for (const std::byte byte : bytes)
    code.prepend(QStringLiteral("%1").arg(std::to_integer<int>(byte), 2, 16, QChar(u'0')));
  return QStringLiteral("%1 0x%2").arg(toQt(dtypeName(m_summary.spec.dtype)), code);
}

/// Where a value stands between the least and the largest one; zeros have no magnitude.
std::optional<double> TensorModel::shareOf(double value) const {
  if (m_shading == Shading::None || !std::isfinite(value)) return std::nullopt;
  const TensorStatistics& statistics = m_summary.statistics;
  if (m_shading == Shading::Value) {
    const double range = statistics.max - statistics.min;
    return range > 0.0 ? std::clamp((value - statistics.min) / range, 0.0, 1.0) : 0.5;
  }
  const MagnitudeHistogram& magnitudes = statistics.magnitudes;
  if (value == 0.0 || magnitudes.counts.empty()) return std::nullopt;
  const double height = std::log2(std::abs(value)) - magnitudes.firstExponent;
  return std::clamp(height / static_cast<double>(magnitudes.counts.size()), 0.0, 1.0);
}

QVariant TensorModel::ground(double value) const {
  const std::optional<double> share = shareOf(value);
  return share ? QVariant(heatColor(*share)) : QVariant();
}

QVariant TensorModel::ink(double value) const {
  if (!std::isfinite(value)) return m_theme.colors().error;
  const std::optional<double> share = shareOf(value);
  return share ? QVariant(textOn(heatColor(*share))) : QVariant();
}

QVariant TensorModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return rowLabel(section);
  return isVector() ? QStringLiteral("+%1").arg(section) : QString::number(section);
}

/// The places in the leading dimensions; of a vector, the first element of the row.
QString TensorModel::rowLabel(std::int64_t row) const {
  const std::int64_t first = row * numColumns();
  if (isVector()) return QString::number(first);
  const QString place = placeOf(first);
  return place.mid(1, place.lastIndexOf(u',') - 1);
}

}  // namespace fuseline::ui
