// ThumbnailMaker: pipelines drawn small, as the canvas shows them, one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QObject>
#include <QPixmap>

#include <deque>
#include <memory>
#include <string>

namespace fuseline::ui {

/// Each pipeline is analysed in a thread of its own, so that the window goes on meanwhile.
class ThumbnailMaker : public QObject {
  Q_OBJECT

 public:
  /// Makes thumbnails of size.width() x size.height() pixels, times the screen's density, in the theme's current
  /// colors.
  ThumbnailMaker(const Theme& theme, SessionSettings settings, QSize size, QObject* parent = nullptr);
  ~ThumbnailMaker() override;

  /// Requests a thumbnail of the pipeline in `text`; made() reports it under `name`.
  void request(const QString& name, const std::string& text);
  /// Forgets what was requested and is not made yet.
  void clear();

 Q_SIGNALS:
  void made(const QString& name, const QPixmap& picture);

 private:
  struct Request {
    QString name;
    std::string text;
  };
  void startNext();
  void finish();

  const Theme& m_theme;
  SessionSettings m_settings;
  QSize m_size;
  std::deque<Request> m_requests;      // the first one is being made
  std::unique_ptr<Session> m_session;  // of that one
};

}  // namespace fuseline::ui
