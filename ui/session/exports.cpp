// Files out.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/exports.h"

#include "core/export/html_comparison.h"
#include "core/lowering/lowering.h"
#include "core/profile/run_file.h"
#include "core/runtime/bindings.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/atomic_file.h"
#include "core/tensor/safetensors.h"
#include "ui/session/baselines.h"
#include "ui/session/session.h"

#include <QFileInfo>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::ui {

namespace {

/// "A: before the change"
std::vector<NamedRun> namedRunsOf(const Baselines& baselines) {
  std::vector<NamedRun> runs;
  for (const Baseline& each : baselines.all())
    runs.push_back({QStringLiteral("%1: %2").arg(each.letter(), each.name).toStdString(), *each.record});
  return runs;
}

/// Errors: there is none.
Result<const RunRecord*> measuredRun(const Session& session) {
  if (const auto& run = session.results().lastRun()) return &run->record;
  return Error{Session::tr("No measurements yet. Run the pipeline first.").toStdString()};
}

}  // namespace

Result<void> writeParameters(const Session& session, const QString& path) {
  const LoweredGraph lowered = lower(session.pipeline().document());
  const std::string name = session.pipeline().displayName().toStdString();
  if (const std::string problems = errorText(lowered.diagnostics, name); !problems.empty()) return Error{problems};
  const Result<NamedTensors> given = session.setup().givenTensors();
  if (!given) return given.error();
  const Result<NamedTensors> bindings = makeBindings(lowered.graph, session.setup().spec().seed, *given);
  if (!bindings) return bindings.error();
  return writeSafetensors(path.toStdString(), parametersOf(lowered.graph, *bindings));
}

Result<void> writeRun(const Session& session, const QString& path) {
  const Result<const RunRecord*> run = measuredRun(session);
  if (!run) return run.error();
  return saveRunRecord(**run, path.toStdString());
}

Result<void> writeExportedRun(const Session& session, const Exporter& exporter, const QString& path) {
  const Result<const RunRecord*> run = measuredRun(session);
  if (!run) return run.error();
  const Result<std::string> text =
      exporter.writeWith(**run, namedRunsOf(session.baselines()), session.settings().layOut);
  if (!text) return text.error();
  return writeFileAtomically(path.toStdString(), [&](std::ostream& file) { file << *text; });
}

Result<PipelineText> exportedPipeline(const Session& session, const PipelineExporter& exporter) {
  const PipelineDocument& document = session.pipeline().document();
  const QString name = session.pipeline().displayName();
  AnalysisOptions options = session.plan().options();
  options.ranks = std::exchange(options.place, {}).ranks;  // other programs share whole layers among their ranks
  const Analysis analysis = analyze(document, options);
  if (!analysis.isRunnable()) return Error{errorText(analysis.lowered.diagnostics, name.toStdString())};
  Result<NamedTensors> given = session.setup().givenTensors();
  if (!given) return given.error();
  const auto tensors = given->empty() ? nullptr : std::make_shared<const NamedTensors>(std::move(*given));
  return exporter.write({.name = QFileInfo(name).completeBaseName().toStdString(),
                         .document = document,
                         .options = options,
                         .analysis = analysis,
                         .seed = session.setup().spec().seed,
                         .tensors = tensors,
                         .layOut = session.settings().layOut});
}

}  // namespace fuseline::ui
