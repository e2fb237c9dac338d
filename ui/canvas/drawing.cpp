// Records a scene of its own in colors for paper, and makes a file of the record, with the pipeline in it.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/drawing.h"

#include "core/document/file_format.h"
#include "core/document/picture.h"
#include "core/support/atomic_file.h"
#include "ui/theme/format.h"
#include "ui/theme/svg_picture.h"
#include "ui/widgets/translated.h"

#include <QBuffer>
#include <QDate>
#include <QDir>
#include <QFileInfo>
#include <QFontMetricsF>
#include <QGuiApplication>
#include <QLocale>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QPicture>
#include <QSignalBlocker>
#include <QUrl>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kMarginPx = 16.0;
// Limits: the largest side that the raster painter can address, and the memory of a picture.
constexpr double kLargestSidePx = 32767.0;
constexpr double kLargestAreaPx = 268.0e6;  // 1 GiB
constexpr std::array<std::pair<DrawingFormat, const char*>, 3> kEndings = {
    {{DrawingFormat::Svg, "svg"}, {DrawingFormat::Png, "png"}, {DrawingFormat::Pdf, "pdf"}}};

/// The window does not answer meanwhile.
struct WaitCursor {
  WaitCursor() { QGuiApplication::setOverrideCursor(Qt::WaitCursor); }
  ~WaitCursor() { QGuiApplication::restoreOverrideCursor(); }
  WaitCursor(const WaitCursor&) = delete;
  WaitCursor& operator=(const WaitCursor&) = delete;
};

/// A second scene of the pipeline with its own colors: the window is not changed.
class Paper {
 public:
  Paper(Session& session, const GraphScene& shown, const DrawingOptions& options) : m_scene(session, m_theme) {
    m_theme.usePaperColors(options.isDark);
    m_scene.canvasItems().setHullFilter(shown.canvasItems().hullFilter());
    m_scene.measured().overlay().choose(options.showsFigures ? shown.measured().overlay().mode() : HeatMode::Off);
    m_scene.canvasItems().setSpeedupsVisible(options.showsFigures);
    m_scene.canvasItems().setWireLabels(shown.canvasItems().wireLabels());
    const QSignalBlocker keepsSelection(m_scene);  // that of the session
    m_scene.clearSelection();
  }

  bool isEmpty() const { return m_scene.contentRect().isEmpty(); }

  /// In whole pixels, with a margin.
  QRect area() const {
    const QRectF content = m_scene.contentRect().united(m_scene.canvasItems().wiresRect());
    return content.adjusted(-kMarginPx, -kMarginPx, kMarginPx, kMarginPx).toAlignedRect();
  }

  /// At the size of the canvas.
  QPicture recorded() {
    QPicture picture;
    QPainter painter(&picture);
    paintInto(painter, QRectF(QPointF(), area().size()));
    return picture;
  }

  void paintInto(QPainter& painter, const QRectF& target) {
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    painter.fillRect(target, m_theme.colors().canvas);
    m_scene.render(&painter, target, area());
  }

 private:
  const WaitCursor m_waiting;
  Theme m_theme;
  GraphScene m_scene;
};

/// A painted canvas, and how to save it. Unlike a scene it may be used on any thread.
struct Record {
  QPicture picture;
  QSize size;
  DrawingOptions options;
  QString title;

  /// Onto a device of whose pixels `scale` are one of the canvas.
  void paintOn(QPaintDevice& device, int scale) {
    QPainter painter(&device);
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    painter.scale(scale, scale);
    picture.play(&painter);
  }
};

QByteArray svgOf(Record& record) {
  return svgPicture(record.size, record.title, translated("A pipeline drawn by Fuseline"),
                    [&](QPaintDevice& device) { record.paintOn(device, 1); });
}

Result<QImage> imageOf(Record& record) {
  const QSizeF size = QSizeF(record.size) * record.options.scale;
  const bool isTooLarge =
      std::max(size.width(), size.height()) > kLargestSidePx || size.width() * size.height() > kLargestAreaPx;
  QImage image;
  if (!isTooLarge) image = QImage(size.toSize(), QImage::Format_RGB32);
  if (image.isNull())
    return Error{translated("The PNG would be %1 × %2 pixels, which is too large. Choose a smaller scale, or SVG.")
                     .arg(size.width())
                     .arg(size.height())
                     .toStdString()};
  record.paintOn(image, record.options.scale);
  return image;
}

QByteArray pngOf(const QImage& image) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  image.save(&buffer, "PNG");
  return bytes;
}

Result<QByteArray> pngOf(Record& record) {
  const Result<QImage> image = imageOf(record);
  return image ? Result<QByteArray>(pngOf(*image)) : image.error();
}

QByteArray pdfOf(Record& record) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  QPdfWriter writer(&buffer);
  buffer.open(QIODevice::WriteOnly);  // unlike the other writers, this one does not
  constexpr double kPointsPerInch = 72.0;
  writer.setResolution(screenDotsPerInch());
  writer.setPageSize(QPageSize(QSizeF(record.size) * kPointsPerInch / screenDotsPerInch(), QPageSize::Point, QString(),
                               QPageSize::ExactMatch));
  writer.setPageMargins(QMarginsF());
  writer.setTitle(record.title);
  writer.setCreator(QStringLiteral("Fuseline"));
  record.paintOn(writer, 1);
  return bytes;
}

/// The name of the file and the date, above a line; returns how high that is.
double paintHead(QPainter& painter, const QRectF& page, const QString& name) {
  const double height = QFontMetricsF(painter.font(), painter.device()).height();
  const QRectF line(page.topLeft(), QSizeF(page.width(), height));
  const QString date = QLocale().toString(QDate::currentDate(), QLocale::ShortFormat);
  painter.drawText(line, Qt::AlignLeft, name);
  painter.drawText(line, Qt::AlignRight, date);
  painter.drawLine(line.bottomLeft(), line.bottomRight());
  return 2 * height;
}

/// At the top of the room, as large as it fits there and never more than `most` times as large.
QRectF fitted(const QSizeF& size, const QRectF& room, double most) {
  const double scale = std::min({room.width() / size.width(), room.height() / size.height(), most});
  QRectF target(QPointF(), size * scale);
  target.moveCenter({room.center().x(), room.top() + target.height() / 2});
  return target;
}

Error nothingToDraw() {
  return Error{translated("The pipeline is empty. Add an op before you export a drawing.").toStdString()};
}

QString titleOf(const Session& session) { return QFileInfo(session.pipeline().displayName()).completeBaseName(); }

QByteArray withPipelineOf(const PipelineDocument& document, const QByteArray& picture) {
  return QByteArray::fromStdString(withPipeline(picture.toStdString(), serialize(document)));
}

Result<QByteArray> fileOf(Record record, const PipelineDocument& document) {
  if (record.options.format == DrawingFormat::Pdf) return pdfOf(record);
  const Result<QByteArray> picture =
      record.options.format == DrawingFormat::Svg ? Result<QByteArray>(svgOf(record)) : pngOf(record);
  return picture && record.options.embedsPipeline ? withPipelineOf(document, *picture) : picture;
}

Result<Record> recordOf(Session& session, const GraphScene& shown, const DrawingOptions& options) {
  Paper paper(session, shown, options);
  if (paper.isEmpty()) return nothingToDraw();
  return Record{paper.recorded(), paper.area().size(), options, titleOf(session)};
}

}  // namespace

std::optional<DrawingFormat> drawingFormatOf(const QString& path) {
  const QString ending = QFileInfo(path).suffix().toLower();
  for (const auto& [format, name] : kEndings)
    if (ending == QLatin1String(name)) return format;
  return std::nullopt;
}

QString endingOf(DrawingFormat format) {
  return QLatin1String(std::ranges::find(kEndings, format, &std::pair<DrawingFormat, const char*>::first)->second);
}

Result<DrawingWork> drawingWork(Session& session, const GraphScene& shown, const DrawingOptions& options) {
  Result<Record> record = recordOf(session, shown, options);
  if (!record) return record.error();
  return DrawingWork(
      [record = std::move(*record), document = session.pipeline().document()] { return fileOf(record, document); });
}

Result<QByteArray> drawing(Session& session, const GraphScene& shown, const DrawingOptions& options) {
  const Result<DrawingWork> work = drawingWork(session, shown, options);
  return work ? (*work)() : work.error();
}

QSize drawingSize(Session& session, const GraphScene& shown, const DrawingOptions& options) {
  return Paper(session, shown, options).area().size();
}

Result<void> writeDrawing(const DrawingWork& work, const QString& path) {
  const Result<QByteArray> picture = work();
  if (!picture) return picture.error();
  return writeFileAtomically(path.toStdString(), [&](std::ostream& file) {
    file.write(picture->constData(), static_cast<std::streamsize>(picture->size()));
  });
}

Result<void> writeDrawing(Session& session, const GraphScene& shown, const DrawingOptions& options,
                          const QString& path) {
  const Result<DrawingWork> work = drawingWork(session, shown, options);
  return work ? writeDrawing(*work, path) : work.error();
}

Result<void> printDrawing(Session& session, const GraphScene& shown, const DrawingOptions& options,
                          QPaintDevice& device, const QRectF& page) {
  Paper paper(session, shown, options);
  if (paper.isEmpty()) return nothingToDraw();
  QPainter painter(&device);
  const double head = paintHead(painter, page, session.pipeline().displayName());
  const double lifeSize = static_cast<double>(device.logicalDpiX()) / screenDotsPerInch();
  paper.paintInto(painter, fitted(paper.area().size(), page.adjusted(0, head, 0, 0), lifeSize));
  return {};
}

Result<PicturesWork> picturesWork(Session& session, const GraphScene& shown, const DrawingOptions& options) {
  Result<Record> record = recordOf(session, shown, options);
  if (!record) return record.error();
  return PicturesWork(
      [record = std::move(*record), document = session.pipeline().document()]() mutable -> Result<DrawingPictures> {
        Result<QImage> image = imageOf(record);
        if (!image) return image.error();
        const auto whole = [&](const QByteArray& bytes) {
          return record.options.embedsPipeline ? withPipelineOf(document, bytes) : bytes;
        };
        return DrawingPictures{*image, whole(pngOf(*image)), whole(svgOf(record))};
      });
}

std::unique_ptr<QMimeData> mimeDataOf(const DrawingPictures& pictures) {
  auto data = std::make_unique<QMimeData>();
  data->setImageData(pictures.image);
  data->setData(QStringLiteral("image/png"), pictures.png);
  data->setData(QStringLiteral("image/svg+xml"), pictures.svg);
  return data;
}

Result<std::unique_ptr<QMimeData>> drawingForClipboard(Session& session, const GraphScene& shown,
                                                       const DrawingOptions& options) {
  const Result<PicturesWork> work = picturesWork(session, shown, options);
  if (!work) return work.error();
  const Result<DrawingPictures> pictures = (*work)();
  if (!pictures) return pictures.error();
  return mimeDataOf(*pictures);
}

Result<std::unique_ptr<QMimeData>> drawingForDrag(Session& session, const GraphScene& shown,
                                                  const DrawingOptions& options, const QString& folder) {
  Result<std::unique_ptr<QMimeData>> data = drawingForClipboard(session, shown, options);
  if (!data) return data;
  const QString path = QDir(folder).filePath(titleOf(session) + u'.' + endingOf(options.format));
  if (const Result<void> written = writeDrawing(session, shown, options, path); !written) return written.error();
  (*data)->setUrls({QUrl::fromLocalFile(path)});
  return data;
}

}  // namespace fuseline::ui
