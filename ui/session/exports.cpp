// Files out.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/exports.h"

#include "core/export/html_comparison.h"
#include "core/export/model/model_files.h"
#include "core/export/model/weight_map.h"
#include "core/lowering/lowering.h"
#include "core/profile/run_file.h"
#include "core/runtime/bindings.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/atomic_file.h"
#include "core/tensor/safetensors.h"
#include "ui/session/baselines.h"
#include "ui/session/session.h"
#include "ui/theme/format.h"

#include <QFileInfo>

#include <algorithm>
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

/// A copy: the next run may take the place of the last one. Errors: there is none.
Result<RunRecord> measuredRun(const Session& session) {
  if (const auto& run = session.results().lastRun()) return run->record;
  return Error{Session::tr("No measurements yet. Run the pipeline first.").toStdString()};
}

/// No file has no tensors.
Result<NamedTensors> tensorsIn(const PipelineDocument& document, const QString& file) {
  return file.isEmpty() ? NamedTensors{} : readTensors(document, file.toStdString());
}

/// The parts of a session that a text of the pipeline is made of.
struct PipelineToExport {
  QString name;
  PipelineDocument document;
  AnalysisOptions options;
  QString tensorsFile;
  std::uint64_t seed = 0;
  LayOutGraph layOut;
};

/// In the words of the window, without places in the file.
Error notExportable(const PipelineDocument& document, const std::vector<Diagnostic>& problems) {
  const auto isError = [](const Diagnostic& problem) { return problem.severity == Severity::Error; };
  const auto first = std::ranges::find_if(problems, isError);
  if (document.ops().empty())
    return Error{Session::tr("The pipeline has no ops yet. Add one to export it.").toStdString()};
  if (first == problems.end()) return Error{Session::tr("The pipeline has no plan yet.").toStdString()};
  const auto numOthers = std::ranges::count_if(problems, isError) - 1;
  QString sentence = Session::tr("The pipeline has an error: %1").arg(toQt(first->message));
  if (numOthers > 0) sentence += Session::tr(" The Problems pane shows %1 more.").arg(numOthers);
  return Error{sentence.toStdString()};
}

Result<PipelineText> textOf(const PipelineToExport& from, const PipelineExporter& exporter) {
  const Analysis analysis = analyze(from.document, from.options);
  if (!analysis.isRunnable()) return notExportable(from.document, analysis.lowered.diagnostics);
  Result<NamedTensors> given = tensorsIn(from.document, from.tensorsFile);
  if (!given) return given.error();
  const auto tensors = given->empty() ? nullptr : std::make_shared<const NamedTensors>(std::move(*given));
  return exporter.write({.name = QFileInfo(from.name).completeBaseName().toStdString(),
                         .document = from.document,
                         .options = from.options,
                         .analysis = analysis,
                         .seed = from.seed,
                         .tensors = tensors,
                         .layOut = from.layOut});
}

}  // namespace

FileWork parametersWork(const Session& session, const QString& path, ParameterNames names) {
  return [document = session.pipeline().document(), name = session.pipeline().displayName().toStdString(),
          tensorsFile = session.setup().tensorsFile(), seed = session.setup().spec().seed, path = path.toStdString(),
          names]() -> Result<void> {
    const LoweredGraph lowered = lower(document);
    if (const std::string problems = errorText(lowered.diagnostics, name); !problems.empty()) return Error{problems};
    const Result<NamedTensors> given = tensorsIn(document, tensorsFile);
    if (!given) return given.error();
    const Result<NamedTensors> bindings = makeBindings(lowered.graph, seed, *given);
    if (!bindings) return bindings.error();
    NamedTensors parameters = parametersOf(lowered.graph, *bindings);
    if (names == ParameterNames::Pipeline) return writeSafetensors(path, parameters);
    Result<NamedTensors> renamed = withModelNames(document, std::move(parameters));
    return renamed ? writeModelFiles(path, std::move(*renamed)) : renamed.error();
  };
}

FileWork runWork(const Session& session, const QString& path) {
  return [run = measuredRun(session), path = path.toStdString()]() -> Result<void> {
    if (!run) return run.error();
    return saveRunRecord(*run, path);
  };
}

Result<void> writeRun(const Session& session, const QString& path) { return runWork(session, path)(); }

FileWork exportedRunWork(const Session& session, const Exporter& exporter, const QString& path) {
  return [run = measuredRun(session), exporter, beside = namedRunsOf(session.baselines()),
          layOut = session.settings().layOut, path = path.toStdString()]() -> Result<void> {
    if (!run) return run.error();
    const Result<std::string> text = exporter.writeWith(*run, beside, layOut);
    if (!text) return text.error();
    return writeFileAtomically(path, [&](std::ostream& file) { file << *text; });
  };
}

TextWork exportedPipelineWork(const Session& session, const PipelineExporter& exporter) {
  AnalysisOptions options = session.plan().options();
  options.ranks = std::exchange(options.place, {}).ranks;  // other programs share whole layers among their ranks
  return [exporter, from = PipelineToExport{.name = session.pipeline().displayName(),
                                            .document = session.pipeline().document(),
                                            .options = std::move(options),
                                            .tensorsFile = session.setup().tensorsFile(),
                                            .seed = session.setup().spec().seed,
                                            .layOut = session.settings().layOut}] { return textOf(from, exporter); };
}

}  // namespace fuseline::ui
