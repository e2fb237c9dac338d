// Drawings of the canvas for papers, issues and chats: SVG, PNG or PDF, which open again as the pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_scene.h"

#include <QByteArray>
#include <QImage>
#include <QMimeData>
#include <QSize>
#include <QString>

#include <functional>
#include <memory>
#include <optional>

namespace fuseline::ui {

enum class DrawingFormat { Svg, Png, Pdf };

struct DrawingOptions {
  DrawingFormat format = DrawingFormat::Svg;
  bool isDark = false;
  int scale = 2;               // of a PNG: its pixels a pixel of the canvas
  bool showsFigures = true;    // what was measured, as far as the canvas shows it
  bool embedsPipeline = true;  // but for PDF, which is not read again
};

inline constexpr int kLargestDrawingScale = 4;

/// By the ending of a file. Nothing: another one, or none.
std::optional<DrawingFormat> drawingFormatOf(const QString& path);
/// "svg".
QString endingOf(DrawingFormat format);

/// A drawing to be made, with all that it needs: on any thread, whatever becomes of the session. Errors: it would have
/// too many pixels.
using DrawingWork = std::function<Result<QByteArray>()>;

/// The whole pipeline as the canvas shows it, without the selection. Texts of an SVG and a PDF stay texts.
/// Errors: there is nothing to draw.
Result<DrawingWork> drawingWork(Session& session, const GraphScene& shown, const DrawingOptions& options);
/// The same at once.
Result<QByteArray> drawing(Session& session, const GraphScene& shown, const DrawingOptions& options);

/// In pixels of the canvas.
QSize drawingSize(Session& session, const GraphScene& shown, const DrawingOptions& options);

/// Errors: those of the work, or the file cannot be written. On any thread.
Result<void> writeDrawing(const DrawingWork& work, const QString& path);
Result<void> writeDrawing(Session& session, const GraphScene& shown, const DrawingOptions& options,
                          const QString& path);

/// On a page of a printer, as large as it fits and never larger than on a screen, below the name of the file and the
/// date. page: in pixels of the device. Errors: there is nothing to draw.
Result<void> printDrawing(Session& session, const GraphScene& shown, const DrawingOptions& options,
                          QPaintDevice& device, const QRectF& page);

/// One drawing as a PNG and as an SVG.
struct DrawingPictures {
  QImage image;
  QByteArray png;
  QByteArray svg;
};
/// As DrawingWork.
using PicturesWork = std::function<Result<DrawingPictures>()>;
/// Errors: there is nothing to draw.
Result<PicturesWork> picturesWork(Session& session, const GraphScene& shown, const DrawingOptions& options);
std::unique_ptr<QMimeData> mimeDataOf(const DrawingPictures& pictures);

/// For the clipboard: as a PNG and as an SVG. Errors: those of drawing().
Result<std::unique_ptr<QMimeData>> drawingForClipboard(Session& session, const GraphScene& shown,
                                                       const DrawingOptions& options);
/// For other windows: the same, and a file of the chosen format in this folder. Errors: those of writeDrawing().
Result<std::unique_ptr<QMimeData>> drawingForDrag(Session& session, const GraphScene& shown,
                                                  const DrawingOptions& options, const QString& folder);

}  // namespace fuseline::ui
