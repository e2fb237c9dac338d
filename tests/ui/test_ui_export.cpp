// The export dialog: what it shows is what it saves, and what stands in the way is a sentence.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/file_format.h"
#include "core/edit/node_edits.h"
#include "core/export/graphviz/layouts.h"
#include "core/export/html_comparison.h"
#include "core/export/onnx/onnx_proto.h"
#include "core/tensor/safetensors.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/runs/model_nodes.h"
#include "ui/session/exports.h"
#include "ui/widgets/message_bar.h"
#include "ui/window/export_dialog.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDialog>
#include <QFile>
#include <QFileDialog>
#include <QGuiApplication>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <QToolButton>

#include <algorithm>

namespace fuseline::ui::export_test {

class ExportTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void showsEveryFormat();
  void notesStandAboveTheText();
  void saysInWordsOfTheWindowWhatIsWrong();
  void copiesTheText();
  void savesBytesAndShowsTheirListing();
  void aConfigOffersTheWeightsBesideIt();
  void anImportedModelNamesItsOpenExtents();
  void aModelOfOtherOpsStaysClosed();
  void aPipelineWithErrorsIsASentence();
  void aLaidOutDrawingOpensAsItsPipeline();
  void withoutLayoutsADrawingIsASentence();
  void aPageOfARunIsThatOfTheCommandLine();
};

namespace {

struct Dialog {
  explicit Dialog(Fixture& f)
      : dialog([&f](const PipelineExporter& exporter) { return exportedPipelineWork(f.session, exporter); },
               QStringLiteral("small.fuseline"), &f.window) {}
  QString text() const { return dialog.findChild<QPlainTextEdit*>()->toPlainText(); }
  QString notes() const { return dialog.findChild<QLabel*>()->text(); }
  QPushButton* button(const QString& name) const {
    for (QPushButton* button : dialog.findChildren<QPushButton*>())
      if (button->text().remove(u'&') == name) return button;
    return nullptr;
  }
  ExportDialog dialog;
};

}  // namespace

void ExportTest::showsEveryFormat() {
  Fixture f(smallPipeline());
  Dialog dialog(f);
  auto* const formats = dialog.dialog.findChild<QComboBox*>();
  QCOMPARE(formats->count(), static_cast<int>(pipelineExporters().size()));
  QVERIFY(dialog.text().contains(QStringLiteral("\"act\": te.ops.GELU()")));
  formats->setCurrentIndex(formats->findText(QStringLiteral("Graphviz drawing")));
  QVERIFY(dialog.text().startsWith(QStringLiteral("digraph")));
}

void ExportTest::notesStandAboveTheText() {
  Fixture safe(residualPipeline(false));
  QCOMPARE(Dialog(safe).notes().count(u'\n'), 0);
  Fixture inPlace(residualPipeline(true));
  QVERIFY(Dialog(inPlace).notes().contains(QStringLiteral("add: in_place is switched off")));
}

void ExportTest::saysInWordsOfTheWindowWhatIsWrong() {
  Fixture blank(serialize(newPipeline()));
  QVERIFY(Dialog(blank).notes().endsWith(QStringLiteral("\nThe pipeline has no ops yet. Add one to export it.")));
  Fixture wrong(smallPipeline());
  QVERIFY(wrong.session.pipeline().apply(SetAttribute{.id = "fc", .name = "in_features", .value = 7}));
  const QString notes = Dialog(wrong).notes();
  QVERIFY2(
      notes.contains(QStringLiteral("The pipeline has an error: ")) && !notes.contains(QStringLiteral("/pipeline/")),
      qPrintable(notes));
}

void ExportTest::copiesTheText() {
  Fixture f(smallPipeline());
  Dialog dialog(f);
  dialog.button(QStringLiteral("Copy"))->click();
  QCOMPARE(QGuiApplication::clipboard()->text(), dialog.text());
}

void ExportTest::savesBytesAndShowsTheirListing() {
  Fixture f(smallPipeline());
  Dialog dialog(f);
  auto* const formats = dialog.dialog.findChild<QComboBox*>();
  formats->setCurrentIndex(formats->findText(QStringLiteral("ONNX model")));
  QVERIFY2(dialog.text().contains(QStringLiteral("fc.weight: ")), qPrintable(dialog.text()));
  const QTemporaryDir folder;
  const QString path = folder.filePath(QStringLiteral("small.onnx"));
  QTimer::singleShot(0, &dialog.dialog, [&] {
    auto* const chooser = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    chooser->selectFile(path);
    QMetaObject::invokeMethod(chooser, "accept");
  });
  dialog.button(QStringLiteral("Save as..."))->click();
  QVERIFY2(dialog.notes().contains(path), qPrintable(dialog.notes()));
  QFile file(path);
  QVERIFY(file.open(QIODevice::ReadOnly));
  QVERIFY(file.readAll().contains("fuseline.pipeline_hash"));
  Fixture other(residualPipeline(false));
  QVERIFY(other.window.openFile(path));
  QCOMPARE(serialize(other.session.pipeline().document()), serialize(f.session.pipeline().document()));
  QVERIFY(other.session.pipeline().path().isEmpty());
  QVERIFY(other.window.message().contains(path));
  const auto buttons = other.window.findChild<MessageBar*>()->findChildren<QToolButton*>();
  const auto load = std::ranges::find(buttons, QStringLiteral("Load weights"), &QToolButton::text);
  QVERIFY(load != buttons.end() && (*load)->isVisibleTo(&other.window));
  (*load)->click();
  const Result<NamedTensors> weights = readSafetensors(other.session.setup().tensorsFile().toStdString());
  QVERIFY2(weights, qPrintable(other.window.message()));
  QVERIFY(std::ranges::any_of(*weights, [](const auto& tensor) { return tensor.first == "fc.weight"; }));
  QVERIFY(!(*load)->isVisibleTo(&other.window));
}

/// The window gives the worker the model's own file, and opens its folder like its config.
void ExportTest::aConfigOffersTheWeightsBesideIt() {
  const QTemporaryDir folder;
  QFile config(folder.filePath(QStringLiteral("config.json")));
  QVERIFY(config.open(QIODevice::WriteOnly));
  config.write(R"({"model_type": "llama", "vocab_size": 61, "hidden_size": 8, "intermediate_size": 16,
    "num_hidden_layers": 1, "num_attention_heads": 2})");
  config.close();
  Fixture f(smallPipeline());
  const auto offered = [&f] {
    const auto buttons = f.window.findChild<MessageBar*>()->findChildren<QToolButton*>();
    const auto load = std::ranges::find(buttons, QStringLiteral("Load weights"), &QToolButton::text);
    return load != buttons.end() && (*load)->isVisibleTo(&f.window) ? *load : nullptr;
  };
  QVERIFY(f.window.openFile(folder.path()));
  QVERIFY(!offered());
  const QString file = folder.filePath(QStringLiteral("model.safetensors"));
  QVERIFY(writeSafetensors(file.toStdString(), {{"model.norm.weight", Tensor::zeros({DType::BF16, {8}})}}));
  QVERIFY(f.window.openFile(config.fileName()));
  QVERIFY(offered());
  offered()->click();
  QCOMPARE(f.session.setup().tensorsFile(), file);
}

void ExportTest::anImportedModelNamesItsOpenExtents() {
  Fixture f(smallPipeline());
  ::onnx::ModelProto model;
  model.set_ir_version(kOnnxIrVersion);
  model.add_opset_import()->set_version(kOnnxOpset);
  auto& input = *model.mutable_graph()->add_input();
  input.set_name("x");
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnxType(DType::F32));
  type.mutable_shape()->add_dim()->set_dim_param("tokens");
  type.mutable_shape()->add_dim()->set_dim_value(32);
  auto& node = *model.mutable_graph()->add_node();
  node.set_op_type("Relu");
  node.add_input("x");
  node.add_output("y");
  *model.mutable_graph()->add_output() = input;
  model.mutable_graph()->mutable_output(0)->set_name("y");
  const QTemporaryDir folder;
  QFile file(folder.filePath(QStringLiteral("relu.onnx")));
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(QByteArray::fromStdString(model.SerializeAsString()));
  file.close();
  QVERIFY2(f.window.openFile(file.fileName()), qPrintable(f.window.message()));
  QCOMPARE(f.session.pipeline().document().ops().size(), std::size_t{1});
  QVERIFY2(f.window.message().contains(QStringLiteral("tokens is dynamic in the model")),
           qPrintable(f.window.message()));
  const auto offers = f.window.messageBar().findChildren<QToolButton*>();
  const auto nodes = std::ranges::find(offers, QStringLiteral("Model nodes"), &QToolButton::text);
  QVERIFY(nodes != offers.end() && (*nodes)->isVisibleTo(&f.window));
  (*nodes)->click();
  auto* const table = f.window.findChild<ModelNodes*>();
  QVERIFY(table);
  const QAbstractItemModel& rows = *table->view().model();
  QCOMPARE(rows.rowCount(), 1);
  QCOMPARE(rows.index(0, 1).data().toString(), QStringLiteral("Relu"));
  table->view().setCurrentIndex(rows.index(0, 0));
  QCOMPARE(f.session.selection().single(), rows.index(0, 0).data().toString());
}

void ExportTest::aModelOfOtherOpsStaysClosed() {
  Fixture f(smallPipeline());
  const QTemporaryDir folder;
  QFile file(folder.filePath(QStringLiteral("other.onnx")));
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write("no model");
  file.close();
  QVERIFY(!f.window.openFile(file.fileName()));
  QVERIFY2(f.window.message().contains(QStringLiteral("expected an ONNX model")), qPrintable(f.window.message()));
}

void ExportTest::aPipelineWithErrorsIsASentence() {
  Fixture f(smallPipeline());
  QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "fc", .name = "in_features", .value = 5}));
  Dialog dialog(f);
  QVERIFY(dialog.text().isEmpty());
  QVERIFY2(dialog.notes().contains(QStringLiteral("in_features is 5")), qPrintable(dialog.notes()));
  QVERIFY(!dialog.button(QStringLiteral("Copy"))->isEnabled());
  QVERIFY(!dialog.button(QStringLiteral("Save as..."))->isEnabled());
}

namespace {

/// A window of the program, which has layouts.
struct Designer {
  Designer()
      : session(SessionSettings{.workerCommand = {}, .layOut = graphLayout()}),
        window(session, theme, Persistence::None) {}
  Theme theme;
  Session session;
  MainWindow window;
};

QString writtenTo(const QTemporaryDir& folder, const char* name, const std::string& text) {
  const QString path = folder.filePath(QLatin1String(name));
  QFile file(path);
  const bool isOpen = file.open(QIODevice::WriteOnly);
  return isOpen && file.write(QByteArray::fromStdString(text)) >= 0 ? path : QString();
}

}  // namespace

void ExportTest::aLaidOutDrawingOpensAsItsPipeline() {
  Designer designer;
  if (!designer.session.settings().layOut) QSKIP("This build has no Graphviz.");
  designer.session.openText(smallPipeline(), QStringLiteral("small"));
  const Result<PipelineText> svg = exportedPipelineWork(designer.session, *findPipelineExporter("svg"))();
  QVERIFY2(svg.hasValue(), svg ? "" : svg.error().message.c_str());
  const QTemporaryDir folder;
  Fixture other(residualPipeline(false));
  QVERIFY(other.window.openFile(writtenTo(folder, "small.svg", svg->text)));
  QCOMPARE(serialize(other.session.pipeline().document()), serialize(designer.session.pipeline().document()));
}

void ExportTest::withoutLayoutsADrawingIsASentence() {
  Fixture f(smallPipeline());
  Dialog dialog(f);
  auto* const formats = dialog.dialog.findChild<QComboBox*>();
  formats->setCurrentIndex(formats->findText(QStringLiteral("Laid out drawing")));
  QVERIFY2(dialog.notes().contains(QStringLiteral("this build has no Graphviz")), qPrintable(dialog.notes()));
  QVERIFY(!dialog.button(QStringLiteral("Save as..."))->isEnabled());
}

void ExportTest::aPageOfARunIsThatOfTheCommandLine() {
  Designer designer;
  if (!designer.session.settings().layOut) QSKIP("This build has no Graphviz.");
  const QTemporaryDir folder;
  const RunRecord record = measuredRun();
  QVERIFY(designer.window.openFile(writtenTo(folder, "small.fuserun", toJson(record).dump())));
  const QString path = folder.filePath(QStringLiteral("small.html"));
  QVERIFY(exportedRunWork(designer.session, *findExporter("html"), path)());
  QFile page(path);
  QVERIFY(page.open(QIODevice::ReadOnly));
  const Result<std::string> expected = findExporter("html")->writeWith(record, {}, graphLayout());
  QVERIFY(expected->find("<svg") != std::string::npos);
  QCOMPARE(page.readAll().toStdString(), *expected);
}

FUSELINE_UI_TEST(ExportTest)

}  // namespace fuseline::ui::export_test

#include "test_ui_export.moc"
