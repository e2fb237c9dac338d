// SuggestionSearch: looks for edits that would help the session's pipeline, on a thread of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/suggestions.h"
#include "ui/session/session.h"

#include <QObject>
#include <QThreadPool>

#include <stop_token>
#include <vector>

namespace fuseline::ui {

/// Searches again whenever the analysis changes, as long as somebody looks at what it finds.
class SuggestionSearch : public QObject {
  Q_OBJECT

 public:
  explicit SuggestionSearch(Session& session, QObject* parent = nullptr);
  ~SuggestionSearch() override;

  /// Whether the suggestions are visible.
  void setWanted(bool isWanted);
  /// Suggestions for the current analysis; while a search is running, for an older one.
  const std::vector<Suggestion>& found() const { return m_found; }
  bool isSearching() const { return m_isSearching; }
  /// Edits that the running search has tried, or that a canceled one had, and how many it tries at most. 0: not known
  /// yet.
  std::size_t numTried() const { return m_numTried; }
  std::size_t mostTried() const { return m_mostTried; }
  /// Ends the search until the analysis changes, or again() is called.
  void cancel();
  bool isCanceled() const { return m_isCanceled; }
  void again();

 Q_SIGNALS:
  void changed();
  void progressed();

 private:
  void restart();
  void stop();
  void follow(quint64 number, std::size_t tried, std::size_t most);
  void accept(quint64 number, std::vector<Suggestion> found);

  Session& m_session;
  std::vector<Suggestion> m_found;
  std::stop_source m_stop;
  quint64 m_number = 0;  // of the newest search; what older ones find is dropped
  bool m_isWanted = false;
  bool m_isOutdated = true;  // the analysis changed since the last search began
  bool m_isSearching = false;
  bool m_isCanceled = false;
  std::size_t m_numTried = 0;
  std::size_t m_mostTried = 0;
  QThreadPool m_pool;
};

}  // namespace fuseline::ui
