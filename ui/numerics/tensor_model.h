// TensorModel: a captured tensor as a table, read from its bytes cell by cell.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/tensor_statistics.h"
#include "ui/session/captured_file.h"
#include "ui/theme/theme.h"

#include <QAbstractTableModel>
#include <QString>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace fuseline::ui {

/// Meaning of a cell's background color.
enum class Shading { None, Value, Magnitude };

/// The last dimension runs along the columns, all others down the rows. A vector is folded into rows of 16.
class TensorModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  /// As many as a view can keep apart; tensors that have more are cut off.
  static constexpr int kMaxRows = 1 << 22;
  static constexpr int kMaxColumns = 1 << 20;
  static constexpr int kVectorColumns = 16;

  explicit TensorModel(const Theme& theme, QObject* parent = nullptr);

  void show(const TensorSummary& summary, std::shared_ptr<const CapturedFile> file);
  void clear();
  /// Is it this very tensor of this capture?
  bool shows(const TensorSummary& summary, const std::shared_ptr<const CapturedFile>& file) const;
  const std::string& name() const { return m_summary.name; }
  void setShading(Shading shading);

  /// Row-major; -1: none.
  std::int64_t elementAt(const QModelIndex& index) const;
  /// Invalid for what is cut off.
  QModelIndex indexOf(std::int64_t element) const;
  double valueOf(std::int64_t element) const;
  /// "[3, 17]".
  QString placeOf(std::int64_t element) const;
  /// The next NaN or infinity behind this element, after the last one from the beginning on. Nothing: there is none.
  std::optional<std::int64_t> nextNonFinite(std::int64_t element) const;
  bool isCutOff() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 private:
  bool isVector() const { return m_summary.spec.shape.size() < 2; }
  std::int64_t numColumns() const;
  std::int64_t numRows() const;
  std::optional<std::int64_t> firstNonFinite(std::int64_t begin, std::int64_t end) const;
  QString text(std::int64_t element) const;
  QString tip(std::int64_t element) const;
  QString codeOf(std::int64_t element) const;
  QString rowLabel(std::int64_t row) const;
  std::optional<double> shareOf(double value) const;
  QVariant ground(double value) const;
  QVariant ink(double value) const;

  const Theme& m_theme;
  TensorSummary m_summary;
  std::shared_ptr<const CapturedFile> m_file;  // keeps m_bytes
  std::span<const std::byte> m_bytes;
  Shading m_shading = Shading::None;
};

}  // namespace fuseline::ui
