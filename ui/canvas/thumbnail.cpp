// Draws each pipeline in a scene of its own.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/thumbnail.h"

#include "ui/canvas/graph_scene.h"

#include <QGuiApplication>
#include <QPainter>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kThumbnailMarginPx = 12.0;
// A pipeline of two ops is not drawn larger than on the canvas.
constexpr double kLargestScale = 0.8;

QPixmap emptyPicture(QSize size, const QColor& ground) {
  const double density = qGuiApp->devicePixelRatio();
  QPixmap picture(size * density);
  picture.setDevicePixelRatio(density);
  picture.fill(ground);
  return picture;
}

/// The middle of `size`, as large as the content fits there.
QRectF targetOf(const QRectF& content, QSizeF size) {
  const double scale = std::min({size.width() / content.width(), size.height() / content.height(), kLargestScale});
  const QSizeF drawn = content.size() * scale;
  return {QPointF((size.width() - drawn.width()) / 2, (size.height() - drawn.height()) / 2), drawn};
}

QPixmap pictureOf(Session& session, const Theme& theme, QSize size) {
  GraphScene scene(session, theme);
  const QRectF content =
      scene.contentRect()
          .united(scene.canvasItems().wiresRect())
          .adjusted(-kThumbnailMarginPx, -kThumbnailMarginPx, kThumbnailMarginPx, kThumbnailMarginPx);
  QPixmap picture = emptyPicture(size, theme.colors().canvas);
  QPainter painter(&picture);
  painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
  scene.render(&painter, targetOf(content, size), content);
  return picture;
}

}  // namespace

ThumbnailMaker::ThumbnailMaker(const Theme& theme, SessionSettings settings, QSize size, QObject* parent)
    : QObject(parent), m_theme(theme), m_settings(std::move(settings)), m_size(size) {}

ThumbnailMaker::~ThumbnailMaker() = default;

void ThumbnailMaker::request(const QString& name, const std::string& text) {
  m_requests.push_back({name, text});
  if (!m_session) startNext();
}

void ThumbnailMaker::clear() {
  m_requests.clear();
  m_session.reset();
}

void ThumbnailMaker::startNext() {
  m_session.reset();
  if (m_requests.empty()) return;
  m_session = std::make_unique<Session>(m_settings);
  // Queued: a session does not survive its own signal.
  connect(&m_session->plan(), &LivePlan::analysisChanged, this, &ThumbnailMaker::finish, Qt::QueuedConnection);
  m_session->openText(m_requests.front().text, m_requests.front().name);
}

void ThumbnailMaker::finish() {
  if (!m_session || m_session->plan().isAnalysing()) return;
  const QPixmap picture = pictureOf(*m_session, m_theme, m_size);
  const QString name = std::move(m_requests.front().name);
  m_requests.pop_front();
  startNext();
  Q_EMIT made(name, picture);
}

}  // namespace fuseline::ui
