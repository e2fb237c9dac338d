// TemplateCard: a button with a picture of a pipeline, its name, and what it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/theme/theme.h"

#include <QAbstractButton>
#include <QPainter>
#include <QPixmap>

namespace fuseline::ui {

class TemplateCard : public QAbstractButton {
  Q_OBJECT

 public:
  static constexpr QSize kPictureSize = {272, 96};

  TemplateCard(const QString& name, const QString& summary, const Theme& theme, QWidget* parent = nullptr);

  void setPicture(const QPixmap& picture);
  bool hasPicture() const { return !m_picture.isNull(); }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void enterEvent(QEnterEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  int lineHeight() const;
  void drawFrame(QPainter& painter) const;
  void drawPicture(QPainter& painter) const;
  void drawTexts(QPainter& painter) const;

  QString m_summary;
  const Theme& m_theme;
  QPixmap m_picture;
};

}  // namespace fuseline::ui
