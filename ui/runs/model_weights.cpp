// The model is read again on another thread: an import without weights takes a fraction of the time and memory.
// SPDX-License-Identifier: Apache-2.0
#include "ui/runs/model_weights.h"

#include "core/export/model/model_import.h"
#include "core/export/model/weight_files.h"
#include "core/export/onnx/onnx_import.h"
#include "core/tensor/safetensors.h"
#include "ui/runs/model_nodes.h"
#include "ui/theme/format.h"
#include "ui/widgets/long_job.h"

#include <QFileInfo>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::ui {

namespace {

/// Number of tensors written. Errors: the model has none, or they cannot be read or written.
Result<std::size_t> writeWeightsOf(const std::filesystem::path& model, const std::filesystem::path& file) {
  const Result<ImportedPipeline> imported = importOnnx(model, {.takesWeights = true});
  if (!imported) return imported.error();
  if (imported->weightsProblem) return *imported->weightsProblem;
  if (imported->weights.empty()) return Error{model.string() + ": the model has no weights for these ops."};
  if (Result<void> written = writeSafetensors(file, imported->weights); !written) return written.error();
  return imported->weights.size();
}

/// The safetensors files beside a config, as the path that names them all; empty: there are none.
QString filesBeside(const std::filesystem::path& config) {
  const std::filesystem::path folder = std::filesystem::absolute(config).parent_path();
  const Result<WeightFiles> weights = WeightFiles::open(folder);
  if (!weights) return {};
  const std::vector<std::filesystem::path> files = weights->files();
  return toQt((files.size() == 1 ? files.front() : folder).string());
}

}  // namespace

ModelWeights::ModelWeights(Session& session, MessageBar& bar, QWidget& window)
    : QObject(&window), m_session(session), m_bar(bar), m_window(window) {}

void ModelWeights::offer(const QString& path) {
  const auto offerTo = [this](std::function<void()> use) {
    m_bar.offer(tr("Load weights"), tr("Runs use the weights of the model instead of random ones"), std::move(use));
  };
  const std::filesystem::path model = modelConfigOf(path.toStdString());
  if (isOnnxFile(model)) {
    m_bar.offer(tr("Model nodes"), tr("List the ONNX nodes behind each op"), [this, path] { showNodes(path); });
    if (m_folder.isValid()) offerTo([this, path] { load(path); });
    return;
  }
  if (!isModelConfig(model)) return;
  if (const QString files = filesBeside(model); !files.isEmpty())
    offerTo([this, files] { m_session.setup().setTensorsFile(files); });
}

void ModelWeights::showNodes(const QString& path) {
  const QString name = QFileInfo(path).fileName();
  const auto imported = resultUnlessCanceled(m_window, tr("Reading the nodes of %1…").arg(name),
                                             [path] { return importOnnx(path.toStdString()); });
  if (!imported) return;
  if (!*imported) return Q_EMIT message(toQt(imported->error().message), Severity::Error);
  if ((*imported)->nodes.empty())
    return Q_EMIT message(tr("Fuseline exported %1: its nodes have the names of the ops.").arg(name), Severity::Note);
  auto* table = new ModelNodes(m_session, (*imported)->nodes, name, m_window);
  table->setAttribute(Qt::WA_DeleteOnClose);
  table->show();
}

void ModelWeights::load(const QString& path) {
  const QString name = QFileInfo(path).completeBaseName();
  const QString file = m_folder.filePath(name + QStringLiteral(".safetensors"));
  const auto written =
      resultUnlessCanceled(m_window, tr("Reading the weights of %1…").arg(QFileInfo(path).fileName()),
                           [path, file] { return writeWeightsOf(path.toStdString(), file.toStdString()); });
  if (!written) return;
  if (!*written) return Q_EMIT message(toQt(written->error().message), Severity::Error);
  m_session.setup().setTensorsFile(file);
  Q_EMIT message(
      tr("Runs use %1 of %2. For random weights choose Run > Use random tensors.")
          .arg(counted(static_cast<qsizetype>(**written), tr("tensor"), tr("tensors")), QFileInfo(path).fileName()),
      Severity::Note);
}

}  // namespace fuseline::ui
