// Results and what makes them stale.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/last_results.h"

#include "core/plan/analysis.h"
#include "core/runtime/measured_pipeline.h"
#include "ui/theme/format.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace fuseline::ui {

const TensorSummary* LastCapture::find(std::string_view tensor) const {
  const auto found = std::ranges::find(tensors, tensor, &TensorSummary::name);
  return found == tensors.end() ? nullptr : &*found;
}

LastResults::LastResults(const OpenPipeline& pipeline, const RunSetup& setup) : m_pipeline(pipeline), m_setup(setup) {
  connect(&pipeline, &OpenPipeline::changed, this, &LastResults::refreshStaleness);
  for (const auto signal :
       {&RunSetup::passChanged, &RunSetup::deviceChanged, &RunSetup::tensorSourceChanged, &RunSetup::ranksChanged})
    connect(&setup, signal, this, &LastResults::refreshStaleness);
}

void LastResults::setRunNote(const std::string& note) {
  if (m_run) m_run->record.note = note;
}

void LastResults::setRowNote(const RowNote& note) {
  if (!m_run) return;
  m_run->record.setNoteOf(note);
  Q_EMIT rowNotesChanged();
}

void LastResults::setStretchNote(const StretchNote& note) {
  if (!m_run) return;
  putStretchNote(m_run->record.stretchNotes, note);
  Q_EMIT stretchNotesChanged();
}

/// Another version of Fuseline, or switches of fusions that the run was given, may have made another plan.
void LastResults::setDifferingSteps(const Analysis& analysis) {
  if (openedRun() && !m_run->isStale) m_run->origin->differingSteps = toQt(differingSteps(m_run->record, analysis));
}

void LastResults::leave() {
  if (m_run) Q_EMIT leaving();
}

void LastResults::startWith(std::optional<LastRun> run) {
  m_numerics.reset();
  m_capture.reset();
  m_run = std::move(run);
  m_runFile = openedRun() ? openedRun()->origin->file : QString();
}

void LastResults::takeRun(const LastRun& run) {
  leave();
  m_run = run;
  m_runFile.clear();
  keepNumerics();
  refreshStaleness();
  Q_EMIT runTaken(*m_run);
}

void LastResults::takeNumerics(LastNumerics numerics) {
  m_numerics = std::move(numerics);
  keepNumerics();
  refreshStaleness();
}

void LastResults::takeCapture(LastCapture capture) {
  m_capture = std::move(capture);
  refreshStaleness();
}

/// Keeps numerics of the same pipeline with the run, so that they are exported together.
void LastResults::keepNumerics() {
  if (!m_run || !m_numerics || m_run->origin) return;
  const bool isSame = m_run->pass == m_numerics->pass && m_run->device == m_numerics->device &&
                      m_run->source == m_numerics->source && meansTheSame(m_run->document, m_numerics->document);
  if (isSame) m_run->record.numerics = summarized(m_numerics->report);
}

/// A run that was opened was measured elsewhere: the device that runs would use here does not make it older.
void LastResults::refreshStaleness() {
  const std::string place = m_setup.runTarget().place();
  const auto hasOtherRanks = [wanted = m_setup.spec()](const LastRun& run) {
    const RunSpec& measured = run.record.settings;
    return std::tie(measured.ranks, measured.overlaps, measured.chunks) !=
           std::tie(wanted.ranks, wanted.overlaps, wanted.chunks);
  };
  const auto isStale = [&](const auto& last) {
    return last.pass != m_setup.pass() || last.device != place || !meansTheSame(last.document, m_pipeline.document());
  };
  // Times do not depend on the numbers; these are the numbers.
  const auto areOthers = [&](const auto& last) { return last.source != m_setup.tensorSource() || isStale(last); };
  if (openedRun())
    m_run->isStale =
        m_run->pass != m_setup.pass() || hasOtherRanks(*m_run) || !meansTheSame(m_run->document, m_pipeline.document());
  else if (m_run)
    m_run->isStale = isStale(*m_run) || hasOtherRanks(*m_run);
  if (m_numerics) m_numerics->isStale = areOthers(*m_numerics);
  if (m_capture) m_capture->isStale = areOthers(*m_capture);
}

}  // namespace fuseline::ui
