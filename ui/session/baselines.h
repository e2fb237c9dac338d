// Baselines: the runs that others are set beside, each under a letter and a name; one of them is the reference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"

#include <QObject>
#include <QString>

#include <cstddef>
#include <memory>
#include <vector>

namespace fuseline::ui {

struct Baseline {
  std::shared_ptr<const RunRecord> record;
  QString name;  // the user's note, or that of its file, or of its pipeline
  QString file;  // empty: it is in none that is known
  int slot = 0;  // 0 is A. It stays while the run is pinned

  QString letter() const { return QString(QChar(u'A' + slot)); }
};

class Baselines : public QObject {
  Q_OBJECT

 public:
  static constexpr int kMost = 4;

  using QObject::QObject;

  /// By letter.
  const std::vector<Baseline>& all() const { return m_all; }
  bool isEmpty() const { return m_all.empty(); }
  /// Baseline for views that compare with one run: the one pinned or chosen last; nullptr if there is none.
  const Baseline* reference() const;
  /// The one that took turns with a run and is in no file: the next one that does takes its place. nullptr: none.
  const Baseline* oldTurns() const;
  /// For one more that takes turns with a run.
  bool hasRoomForTurns() const { return m_all.size() < std::size_t{kMost} || oldTurns(); }
  /// nullptr: none of them is in this file.
  const Baseline* inFile(const QString& file) const;

  /// Under the first letter that is free, as the reference. A file that is pinned already only becomes that.
  /// Errors: there are kMost of them.
  Result<void> pin(RunRecord run, const QString& file = {});
  void unpin(int slot);
  void unpinAll();
  void setReference(int slot);
  /// By the user's note; of an empty one as if there were none.
  void rename(const QString& file, const std::string& note);
  void followFile(const QString& from, const QString& to);

 Q_SIGNALS:
  void changed();
  /// After changed(): it was not there before.
  void pinned(int slot);

 private:
  int freeSlot() const;
  const Baseline* inSlot(int slot) const;

  std::vector<Baseline> m_all;
  int m_reference = 0;  // its slot
};

}  // namespace fuseline::ui
