// NodeStatuses: whether the ops of a pipeline were timed, and what came of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/timings/node_status.h"

#include <QObject>
#include <QString>

#include <set>
#include <string>

namespace fuseline::ui {

class NodeStatuses : public QObject {
  Q_OBJECT

 public:
  explicit NodeStatuses(const Session& session);

  bool hasFailed() const { return !m_failure.isEmpty(); }
  /// Status of an op of the document.
  NodeStatus of(const std::string& op) const;
  /// The same as a sentence: "Its times were measured on cpu."
  QString textOf(const std::string& op) const;

 Q_SIGNALS:
  /// When a run begins and when it ends, never in between: what is painted then would disturb what is timed.
  void changed();

 private:
  void begin();
  void end(const QString& failure = {});
  bool isBlamed(const std::string& op) const;
  std::set<std::string> namedIn(const QString& sentence) const;

  const Session& m_session;
  bool m_isRunning = false;
  bool m_blamesAll = false;  // where a failure names no op: something ran, or the worker is gone
  bool m_isCancelled = false;
  QString m_failure;               // why the last run failed; empty: it did not, or the pipeline is another one since
  std::set<std::string> m_blamed;  // the ops that it names
};

}  // namespace fuseline::ui
