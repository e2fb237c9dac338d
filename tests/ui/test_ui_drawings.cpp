// Drawings of the canvas: what they show, and that they open again as the pipeline they were made of.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/atomic_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/ui/ui_test_main.h"
#include "tests/ui/ui_test_support.h"
#include "ui/theme/format.h"
#include "ui/window/drawing_dialog.h"

#include <QClipboard>
#include <QFileInfo>
#include <QGuiApplication>
#include <QImage>
#include <QMimeData>
#include <QSignalSpy>
#include <QTest>
#include <QThread>
#include <QUrl>
#include <QXmlStreamReader>

#include <algorithm>
#include <cmath>

namespace fuseline::ui::drawings_test {

class DrawingsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void textsOfAnSvgAreTexts();
  void aPngIsAsLargeAsItsScale();
  void colorsAreThoseOfPaperNotOfTheWindow();
  void theSelectionIsKeptAndNotDrawn();
  void hullsAreDrawnAsShown();
  void aPdfIsOne();
  void isMadeOnAnotherThreadAndSavedThere();
  void anEmptyPipelineIsRefused();
  void tooManyPixelsAreRefused();
  void openAsThePipelineInNoFile_data();
  void openAsThePipelineInNoFile();
  void withoutThePipelineItStaysClosed();
  void theDialogOffersTheOptionsOfAFormat();
  void isCopiedAsPngAndSvg();
  void isPrintedBelowItsNameAndFitsThePage();
  void isPrintedNoLargerThanOnTheScreen();
  void anEmptyPipelineIsNotPrinted();
  void isDraggedOutAsAFileThatOpens();
};

namespace {

QByteArray drawn(Fixture& f, const DrawingOptions& options) {
  const Result<QByteArray> bytes = drawing(f.session, f.window.scene(), options);
  return bytes ? *bytes : QByteArray::fromStdString(bytes.error().message);
}

QImage imageOf(Fixture& f, DrawingOptions options) {
  options.format = DrawingFormat::Png;
  return QImage::fromData(drawn(f, options), "PNG");
}

/// Texts of elements with this name; empty if the SVG is not well formed.
QStringList textsOf(const QByteArray& svg, const char* name = "text") {
  QStringList texts;
  QXmlStreamReader xml(svg);
  while (!xml.atEnd())
    if (xml.readNext() == QXmlStreamReader::StartElement && xml.name() == QLatin1String(name))
      texts.append(xml.readElementText());
  return xml.hasError() ? QStringList() : texts.replaceInStrings(QStringLiteral("\n"), QString());
}

}  // namespace

void DrawingsTest::textsOfAnSvgAreTexts() {
  Fixture f(smallPipeline());
  const QByteArray svg = drawn(f, {});
  for (const char* title : {"RMSNorm", "Linear", "GELU"}) QVERIFY2(textsOf(svg).contains(QLatin1String(title)), title);
  const QString pipeline = toQt(serialize(f.session.pipeline().document())).remove(u'\n');
  QCOMPARE(textsOf(svg, "fuseline-pipeline"), QStringList(pipeline));
}

void DrawingsTest::aPngIsAsLargeAsItsScale() {
  Fixture f(smallPipeline());
  const QSize one = imageOf(f, {.scale = 1}).size();
  QVERIFY(one.width() > 300);
  QCOMPARE(imageOf(f, {.scale = 4}).size(), one * 4);
}

void DrawingsTest::colorsAreThoseOfPaperNotOfTheWindow() {
  Fixture f(smallPipeline());
  f.theme.apply(ThemeChoice::Dark);
  const QPalette palette = QApplication::palette();
  QCOMPARE(imageOf(f, {}).pixelColor(0, 0), QColor(Qt::white));
  QVERIFY(imageOf(f, {.isDark = true}).pixelColor(0, 0).lightness() < 64);
  QVERIFY(f.theme.isDark());
  QCOMPARE(QApplication::palette(), palette);
}

void DrawingsTest::theSelectionIsKeptAndNotDrawn() {
  Fixture f(smallPipeline());
  const QImage before = imageOf(f, {});
  f.session.selection().select({QStringLiteral("fc")});
  QCOMPARE(imageOf(f, {}), before);
  QCOMPARE(f.session.selection().single(), QStringLiteral("fc"));
  QVERIFY(f.window.scene().node("fc")->isSelected());
}

void DrawingsTest::hullsAreDrawnAsShown() {
  Fixture f(residualPipeline(true));
  const QString label = f.window.scene().canvasItems().hulls().front()->look().label;
  f.window.scene().canvasItems().setHullFilter(HullFilter::None);
  QVERIFY(!drawn(f, {.embedsPipeline = false}).contains(label.section(u' ', 0, 0).toUtf8() + " \xC2\xB7"));
  f.window.scene().canvasItems().setHullFilter(HullFilter::Both);
  QVERIFY(drawn(f, {.embedsPipeline = false}).contains(label.section(u' ', 0, 0).toUtf8() + " \xC2\xB7"));
}

void DrawingsTest::aPdfIsOne() {
  Fixture f(smallPipeline());
  const QByteArray pdf = drawn(f, {.format = DrawingFormat::Pdf});
  QVERIFY(pdf.startsWith("%PDF-"));
  QCOMPARE(pdf.count("/Type /Page\n"), 1);
  QVERIFY2(pdf.contains("/FontFile"), "texts are texts, in fonts that come with the file");
}

void DrawingsTest::isMadeOnAnotherThreadAndSavedThere() {
  Fixture f(smallPipeline());
  for (const DrawingFormat format : {DrawingFormat::Svg, DrawingFormat::Png}) {
    const QByteArray here = drawn(f, {.format = format});
    const Result<DrawingWork> work = drawingWork(f.session, f.window.scene(), {.format = format});
    QVERIFY(work);
    QVERIFY(f.session.pipeline().apply(SetAttribute{.id = "norm", .name = "eps", .value = 1e-3}));  // not of the copy
    QByteArray there;
    const std::unique_ptr<QThread> thread(QThread::create([&] { there = *(*work)(); }));
    thread->start();
    QVERIFY(thread->wait());
    QVERIFY(there == here);
    f.session.pipeline().undo();
  }
  const QByteArray here = drawn(f, {.format = DrawingFormat::Png});
  f.window.drawings().copy();
  QCOMPARE(QGuiApplication::clipboard()->mimeData()->data(QStringLiteral("image/png")), here);
  const testing::TemporaryFolder folder;
  const QString path = toQt((folder / "drawing.svg").string());
  QSignalSpy told(&f.window.drawings(), &DrawingCommands::message);
  f.window.drawings().writeTo(path);
  QCOMPARE(told.count(), 1);
  QVERIFY(told.front().front().toString().contains(path));
  QVERIFY(QFileInfo(path).size() > 1000);
}

void DrawingsTest::anEmptyPipelineIsRefused() {
  Fixture f(serialize(PipelineDocument()));
  QCOMPARE(drawn(f, {}), QByteArray("The pipeline is empty. Add an op before you export a drawing."));
}

void DrawingsTest::tooManyPixelsAreRefused() {
  Fixture f(smallPipeline());
  f.session.pipeline().apply(MoveNode{.id = "norm", .position = Position{.x = 0, .y = 20000}});
  const QByteArray refusal = drawn(f, {.format = DrawingFormat::Png, .scale = 2});
  QVERIFY2(refusal.endsWith("pixels, which is too large. Choose a smaller scale, or SVG."), refusal.left(200));
  QVERIFY(textsOf(drawn(f, {})).size() >= 3);
}

void DrawingsTest::openAsThePipelineInNoFile_data() {
  QTest::addColumn<QString>("name");
  QTest::newRow("svg") << "a.svg";
  QTest::newRow("png") << "a.png";
  QTest::newRow("another name") << "a.fuseline";
}

void DrawingsTest::openAsThePipelineInNoFile() {
  QFETCH(const QString, name);
  const testing::TemporaryFolder folder;
  const QString path = toQt((folder / name.toStdString()).string());
  Fixture f(residualPipeline(true));
  const PipelineDocument document = f.session.pipeline().document();
  const DrawingFormat format = drawingFormatOf(path).value_or(DrawingFormat::Png);
  QVERIFY(writeDrawing(f.session, f.window.scene(), {.format = format}, path));
  Fixture other(smallPipeline());
  QVERIFY(other.window.openFile(path));
  QCOMPARE(serialize(other.session.pipeline().document()), serialize(document));
  QVERIFY(other.session.pipeline().path().isEmpty());
  QCOMPARE(other.session.pipeline().displayName(), QStringLiteral("a"));
  QVERIFY(other.window.message().contains(path));
}

void DrawingsTest::withoutThePipelineItStaysClosed() {
  const testing::TemporaryFolder folder;
  const QString path = toQt((folder / "a.svg").string());
  Fixture f(smallPipeline());
  QVERIFY(writeDrawing(f.session, f.window.scene(), {.embedsPipeline = false}, path));
  QVERIFY(!f.window.openFile(path));
  QVERIFY2(f.window.message().contains(QStringLiteral("a.svg: This drawing contains no pipeline.")),
           qPrintable(f.window.message()));
}

void DrawingsTest::theDialogOffersTheOptionsOfAFormat() {
  DrawingDialog dialog({.format = DrawingFormat::Svg, .scale = 3, .showsFigures = false});
  QCOMPARE(dialog.options().scale, 3);
  QCOMPARE(dialog.options().showsFigures, false);
  QCOMPARE(dialog.options().embedsPipeline, true);
  auto* format = dialog.findChild<QComboBox*>();
  const auto enabled = [&] {
    return QPair(dialog.findChildren<QComboBox*>()[2]->isEnabled(), dialog.findChildren<QCheckBox*>()[1]->isEnabled());
  };
  QCOMPARE(enabled(), QPair(false, true));
  format->setCurrentIndex(1);
  QCOMPARE(dialog.options().format, DrawingFormat::Png);
  QCOMPARE(enabled(), QPair(true, true));
  format->setCurrentIndex(2);
  QCOMPARE(enabled(), QPair(false, false));
}

void DrawingsTest::isCopiedAsPngAndSvg() {
  Fixture f(smallPipeline());
  const auto data = drawingForClipboard(f.session, f.window.scene(), {});
  QVERIFY(data);
  QCOMPARE(QImage::fromData((*data)->data(QStringLiteral("image/png"))).size(),
           qvariant_cast<QImage>((*data)->imageData()).size());
  QVERIFY(textsOf((*data)->data(QStringLiteral("image/svg+xml"))).contains(QStringLiteral("RMSNorm")));
}

namespace {

constexpr int kWhite = 255;

/// Bounding box of the pixels that are not white.
QRect inkIn(const QImage& page, const QRect& area) {
  QRect ink;
  for (int y = area.top(); y <= area.bottom(); ++y)
    for (int x = area.left(); x <= area.right(); ++x)
      if (qGray(page.pixel(x, y)) < kWhite) ink |= QRect(x, y, 1, 1);
  return ink;
}

/// A page, and what is printed on it inside a margin.
struct Page {
  Page(Fixture& f, QSize size, int dotsPerMeter) : image(size, QImage::Format_RGB32), area(image.rect()) {
    image.setDotsPerMeterX(dotsPerMeter);
    image.setDotsPerMeterY(dotsPerMeter);
    image.fill(Qt::white);
    area.adjust(20, 20, -20, -20);
    printed = printDrawing(f.session, f.window.scene(), {}, image, area);
  }
  /// Below the head.
  QRect drawing() const {
    const int head = area.top() + 2 * QFontMetrics(QApplication::font(), &image).height();
    return inkIn(image, QRect(0, head, image.width(), image.height() - head));
  }

  QImage image;
  QRect area;
  Result<void> printed;
};

constexpr int kScreenDotsPerMeter = 3780;  // 96 an inch

}  // namespace

void DrawingsTest::isPrintedBelowItsNameAndFitsThePage() {
  Fixture f(smallPipeline());
  const Page page(f, {400, 300}, kScreenDotsPerMeter);
  QVERIFY(page.printed);
  QVERIFY(!inkIn(page.image, QRect(page.area.topLeft(), QSize(100, 10))).isEmpty());  // the name
  QVERIFY(!page.drawing().isEmpty());
  QVERIFY(page.area.contains(page.drawing()));
  QVERIFY2(page.drawing().width() > page.area.width() * 0.8, "it is as large as it fits");
}

void DrawingsTest::isPrintedNoLargerThanOnTheScreen() {
  Fixture f(smallPipeline());
  const double life = f.window.scene().contentRect().width();
  const Page once(f, {4000, 3000}, kScreenDotsPerMeter);
  const Page twice(f, {4000, 3000}, 2 * kScreenDotsPerMeter);
  QVERIFY2(std::abs(once.drawing().width() / life - 1) < 0.05, qPrintable(QString::number(once.drawing().width())));
  QVERIFY2(std::abs(twice.drawing().width() / life - 2) < 0.1, qPrintable(QString::number(twice.drawing().width())));
}

void DrawingsTest::anEmptyPipelineIsNotPrinted() {
  Fixture f(serialize(PipelineDocument()));
  const Page page(f, {400, 300}, kScreenDotsPerMeter);
  QVERIFY(!page.printed);
  QVERIFY(inkIn(page.image, page.image.rect()).isEmpty());
}

void DrawingsTest::isDraggedOutAsAFileThatOpens() {
  Fixture f(smallPipeline());
  const std::unique_ptr<QMimeData> data = f.window.drawings().toDrag();
  QVERIFY(data && data->hasImage() && data->hasFormat(QStringLiteral("image/svg+xml")));
  QCOMPARE(data->urls().size(), 1);
  QCOMPARE(data->urls().front().fileName(), QStringLiteral("test.svg"));
  Fixture other(serialize(PipelineDocument()));
  QVERIFY(other.window.openFile(data->urls().front().toLocalFile()));
  QVERIFY(other.session.pipeline().document() == f.session.pipeline().document());
}

FUSELINE_UI_TEST(DrawingsTest)

}  // namespace fuseline::ui::drawings_test

#include "test_ui_drawings.moc"
