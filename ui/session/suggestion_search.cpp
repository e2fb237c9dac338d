// One search at a time: an edit stops the one before it.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/suggestion_search.h"

#include <utility>

namespace fuseline::ui {

SuggestionSearch::SuggestionSearch(Session& session, QObject* parent) : QObject(parent), m_session(session) {
  m_pool.setMaxThreadCount(1);
  connect(&session.plan(), &LivePlan::analysisChanged, this, [this] {
    m_isOutdated = true;
    restart();
  });
}

SuggestionSearch::~SuggestionSearch() {
  stop();
  m_pool.waitForDone();
}

void SuggestionSearch::setWanted(bool isWanted) {
  m_isWanted = isWanted;
  restart();
}

void SuggestionSearch::stop() {
  m_pool.clear();
  m_stop.request_stop();
}

void SuggestionSearch::restart() {
  if (!m_isWanted || !m_isOutdated) return;
  stop();
  m_stop = {};
  m_isOutdated = false;
  m_isSearching = true;
  m_isCanceled = false;
  m_numTried = m_mostTried = 0;
  const PipelineDocument& document = m_session.pipeline().document();
  m_pool.start([this, number = ++m_number, document, optionsOf = m_session.plan().optionsFor(document),
                token = m_stop.get_token()] {
    const auto onTrial = [this, number](std::size_t tried, std::size_t most) {
      QMetaObject::invokeMethod(
          this, [=, this] { follow(number, tried, most); }, Qt::QueuedConnection);
    };
    std::vector<Suggestion> found = suggestions(document, optionsOf(), {.stop = token, .onTrial = onTrial});
    QMetaObject::invokeMethod(
        this, [this, number, found = std::move(found)]() mutable { accept(number, std::move(found)); },
        Qt::QueuedConnection);
  });
  Q_EMIT changed();
}

void SuggestionSearch::cancel() {
  if (!m_isSearching) return;
  stop();
  ++m_number;
  m_isSearching = false;
  m_isCanceled = true;
  m_found.clear();  // they are of the pipeline before the last edit
  Q_EMIT changed();
}

void SuggestionSearch::again() {
  m_isOutdated = true;
  restart();
}

void SuggestionSearch::follow(quint64 number, std::size_t tried, std::size_t most) {
  if (number != m_number) return;
  m_numTried = tried;
  m_mostTried = most;
  Q_EMIT progressed();
}

void SuggestionSearch::accept(quint64 number, std::vector<Suggestion> found) {
  if (number != m_number) return;
  m_found = std::move(found);
  m_isSearching = false;
  Q_EMIT changed();
}

}  // namespace fuseline::ui
