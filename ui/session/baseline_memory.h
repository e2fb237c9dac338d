// BaselineMemory: which runs were pinned beside a pipeline's file, to be pinned again when it is opened.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

#include <QObject>
#include <QString>

namespace fuseline::ui {

/// In the user's settings, of the last 50 files. A run whose file is gone is left out; where nothing was pinned with a
/// pipeline, baselines stay as they are.
class BaselineMemory : public QObject {
  Q_OBJECT

 public:
  BaselineMemory(Session& session, QObject* parent);

 private:
  void remember();
  void followFile();
  void restore();

  Session& m_session;
  QString m_path;  // of the pipeline's file; empty: it is in none
  bool m_isRestoring = false;
};

}  // namespace fuseline::ui
