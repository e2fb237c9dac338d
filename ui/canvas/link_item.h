// LinkItem: a wire between two ports, with the shape and dtype of its tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/links.h"
#include "core/tensor/tensor_spec.h"
#include "ui/inspector/rank_parts.h"
#include "ui/theme/theme.h"

#include <QFont>
#include <QGraphicsPathItem>
#include <QStringList>

#include <optional>
#include <vector>

namespace fuseline::ui {

/// A smooth line that leaves `from` to the right and enters `to` from the left.
QPainterPath wirePath(QPointF from, QPointF to);

/// Straight pieces of a wire beside its ports, where it leaves for a lane.
inline constexpr double kWireStubPx = 28.0;
/// The same along a lane at this height, with round corners.
QPainterPath lanePath(QPointF from, QPointF to, double lane);

/// How much wires say of their tensors: nothing, "16384×4096" above "bf16", or "[16384, 4096] bf16 → e4m3".
enum class WireLabels { Off, Short, Full };

/// "[16384, 4096] bf16 → e4m3". quantized: the format that a recipe makes of the tensor; empty: none.
QString fullWireText(const TensorSpec& spec, const QString& quantized, const RankPart& part = {});

class LinkItem : public QGraphicsPathItem {
 public:
  enum { Type = UserType + 2 };
  LinkItem(Link link, const Theme& theme);

  int type() const override { return Type; }
  const Link& link() const { return m_link; }
  /// Its tensor; nullopt if unknown. chip: the quantized format of the tensor at the GEMM; empty if it is not
  /// quantized. tip: the same in sentences. Whether anything is new.
  bool showTensor(const std::optional<TensorSpec>& spec, const QString& chip, const QString& tip);
  /// On several ranks: the part of one rank, whose spec the tensor's is, and the collectives. Whether anything is new.
  bool showRanks(const RankPart& part, std::vector<WireCommunication> communication);
  const std::vector<WireCommunication>& communication() const { return m_communication; }
  const std::optional<TensorSpec>& spec() const { return m_spec; }
  const QString& quantizerTip() const { return m_quantizerTip; }
  void setLabels(WireLabels labels);
  /// The lines beside the wire, from top to bottom; the first one stands above it. In one line where it is long enough.
  QStringList labelLines() const;
  /// Where the label may stand, the best place first; empty: the wire has none.
  const std::vector<QRectF>& labelPlaces();
  /// One of them; nullopt: there is no room, and only the tip says what the wire carries.
  void setLabelPlace(const std::optional<QRectF>& place);
  struct FittedLine {
    QString text;
    QFont font;
  };
  std::vector<FittedLine> fittedLines() const;
  bool isLabelShown() const { return m_labelPlace.has_value(); }
  QRectF labelArea() const { return m_labelPlace.value_or(QRectF()); }
  /// Drop here and the new op goes into this wire.
  void setDropTarget(bool isTarget);
  bool isDropTarget() const { return m_isDropTarget; }
  QColor color() const;
  /// There is an error at one of its ends: it is red, with a cross.
  void setBroken(bool isBroken);
  bool isBroken() const { return m_isBroken; }
  /// Is about to be cut.
  void setCut(bool isCut);
  bool isCut() const { return m_isCut; }
  /// In place of setPath(): also keeps the bounds, which every paint of the scene asks for.
  void setRoute(const QPainterPath& path);
  QRectF boundingRect() const override { return m_pathBounds.united(labelArea()); }
  QPainterPath shape() const override;
  void paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget* widget) override;

 private:
  void paintGlow(QPainter& painter) const;
  void paintCross(QPainter& painter) const;
  QPen pen() const;
  void showTip();
  double roomPx() const;
  QRectF labelAreaAt(QPointF point) const;
  QPointF labelPoint() const;
  bool saysAllInOneLine() const;
  void paintLabel(QPainter& painter) const;
  void paintChip(QPainter& painter) const;
  void paintPill(QPainter& painter, const QString& text, double top, const QColor& color) const;
  void paintCommunication(QPainter& painter) const;
  QString communicationText() const;
  std::vector<QRectF> findLabelPlaces() const;
  Link m_link;
  const Theme& m_theme;
  std::optional<TensorSpec> m_spec;
  QString m_chip;
  QString m_quantizerTip;
  RankPart m_part;
  std::vector<WireCommunication> m_communication;
  WireLabels m_labels = WireLabels::Short;
  std::optional<std::vector<QRectF>> m_labelPlaces;  // of the path and the text; nullopt: to be found
  std::optional<QRectF> m_labelPlace;
  bool m_isDropTarget = false;
  bool m_isCut = false;
  bool m_isBroken = false;
  QRectF m_pathBounds;
};

}  // namespace fuseline::ui
