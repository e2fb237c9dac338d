// Pins runs, and takes them off.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/baselines.h"

#include "ui/theme/format.h"

#include <QFileInfo>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

QString nameFor(const RunRecord& run, const QString& file) {
  if (!run.note.empty()) return toQt(run.note);
  return file.isEmpty() ? toQt(run.title()) : QFileInfo(file).completeBaseName();
}

}  // namespace

const Baseline* Baselines::inSlot(int slot) const {
  const auto found = std::ranges::find(m_all, slot, &Baseline::slot);
  return found == m_all.end() ? nullptr : &*found;
}

const Baseline* Baselines::reference() const { return inSlot(m_reference); }

const Baseline* Baselines::oldTurns() const {
  const auto isOld = [](const Baseline& each) { return each.file.isEmpty() && !each.record->roundsId.empty(); };
  const auto old = std::ranges::find_if(m_all, isOld);
  return old == m_all.end() ? nullptr : &*old;
}

const Baseline* Baselines::inFile(const QString& file) const {
  const auto found = std::ranges::find(m_all, file, &Baseline::file);
  return file.isEmpty() || found == m_all.end() ? nullptr : &*found;
}

/// kMost: there is none.
int Baselines::freeSlot() const {
  int slot = 0;
  while (slot < kMost && inSlot(slot)) ++slot;
  return slot;
}

Result<void> Baselines::pin(RunRecord run, const QString& file) {
  if (const Baseline* known = inFile(file)) {
    setReference(known->slot);
    return {};
  }
  const int slot = freeSlot();
  if (slot == kMost)
    return Error{tr("%1 runs are pinned, which is the maximum. Unpin one with the × next to its name above Timings.")
                     .arg(kMost)
                     .toStdString()};
  const QString name = nameFor(run, file);
  m_all.push_back({std::make_shared<const RunRecord>(std::move(run)), name, file, slot});
  std::ranges::sort(m_all, {}, &Baseline::slot);
  m_reference = slot;
  Q_EMIT changed();
  Q_EMIT pinned(slot);
  return {};
}

/// The first of the others becomes the reference in its place.
void Baselines::unpin(int slot) {
  if (std::erase_if(m_all, [slot](const Baseline& each) { return each.slot == slot; }) == 0) return;
  if (!reference() && !m_all.empty()) m_reference = m_all.front().slot;
  Q_EMIT changed();
}

void Baselines::unpinAll() {
  if (m_all.empty()) return;
  m_all.clear();
  Q_EMIT changed();
}

void Baselines::setReference(int slot) {
  if (slot == m_reference || !inSlot(slot)) return;
  m_reference = slot;
  Q_EMIT changed();
}

void Baselines::rename(const QString& file, const std::string& note) {
  for (Baseline& each : m_all) {
    if (file.isEmpty() || each.file != file) continue;
    each.name = note.empty() ? QFileInfo(file).completeBaseName() : toQt(note);
    Q_EMIT changed();
  }
}

void Baselines::followFile(const QString& from, const QString& to) {
  bool isOne = false;
  for (Baseline& each : m_all) {
    if (each.file != from) continue;
    each.file = to;
    isOne = true;
  }
  if (isOne) Q_EMIT changed();
}

}  // namespace fuseline::ui
