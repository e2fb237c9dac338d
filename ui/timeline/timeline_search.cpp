// Matches boxes against words, or else letters.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_search.h"

#include "ui/library/op_search.h"
#include "ui/outline/node_search.h"

#include <algorithm>
#include <functional>

namespace fuseline::ui {

namespace {

QStringList textsOf(const TimelineItem& item) {
  QStringList texts = {item.label, item.stepName, item.kernel, QString::fromStdString(item.category)};
  return texts + item.owners;
}

std::vector<TimelinePlace> placesWhere(const ArrangedTracks& tracks,
                                       const std::function<bool(const TimelineItem&)>& matches) {
  std::vector<TimelinePlace> places;
  for (const std::size_t track : tracks.order()) {
    const auto& items = tracks.all()[track].items;
    const auto first = static_cast<std::ptrdiff_t>(places.size());
    for (std::size_t item = 0; item < items.size(); ++item)
      if (tracks.isShown(track, items[item].row) && matches(items[item])) places.push_back({track, item});
    std::stable_sort(places.begin() + first, places.end(), [&](const TimelinePlace& a, const TimelinePlace& b) {
      return items[a.item].startNs < items[b.item].startNs;
    });
  }
  return places;
}

}  // namespace

std::vector<TimelinePlace> findBoxes(const ArrangedTracks& tracks, const QString& query) {
  const QStringList words = searchWords(query);
  if (words.isEmpty()) return {};
  auto places = placesWhere(tracks, [&](const TimelineItem& item) { return hasAllWords(textsOf(item), words); });
  if (!places.empty()) return places;
  const QString letters = words.join(QString());
  return placesWhere(tracks, [&](const TimelineItem& item) { return hasLettersInOrder(item.label, letters); });
}

}  // namespace fuseline::ui
