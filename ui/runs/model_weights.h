// ModelWeights: offers to run an imported model with its own weights, and a table of its nodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/widgets/message_bar.h"

#include <QObject>
#include <QTemporaryDir>

namespace fuseline::ui {

class ModelWeights : public QObject {
  Q_OBJECT

 public:
  /// Lives as long as the window does.
  ModelWeights(Session& session, MessageBar& bar, QWidget& window);
  /// The bar tells of a pipeline that was imported from this file: puts a button beside it if the file has weights.
  void offer(const QString& path);

 Q_SIGNALS:
  void message(const QString& sentence, Severity severity);

 private:
  void load(const QString& path);
  void showNodes(const QString& path);

  Session& m_session;
  MessageBar& m_bar;
  QWidget& m_window;
  QTemporaryDir m_folder;  // of the files that runs read them from
};

}  // namespace fuseline::ui
