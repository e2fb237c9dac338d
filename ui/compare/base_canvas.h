// BaseCanvas: the base of a comparison as a second canvas on the left, which pans and zooms with the first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/change_marks.h"
#include "ui/canvas/graph_view.h"
#include "ui/session/pipeline_comparison.h"

#include <QAction>
#include <QGraphicsView>
#include <QLabel>
#include <QWidget>

#include <memory>

namespace fuseline::ui {

/// Cannot be edited. Its base is planned for the same device and pass. It shows the times of the base: of the run file
/// that it is from, or of the baseline that measured it.
/// Marks are those of the other side: what is gone is marked as removed, what is new stands as a ghost.
class BaseCanvas : public QWidget {
  Q_OBJECT

 public:
  /// All of them live as long as this.
  BaseCanvas(Session& session, PipelineComparison& comparison, GraphView& view, const Theme& theme, QWidget* parent);

  /// "Side-by-side canvases": shows and hides this canvas while something is compared.
  QAction& toggle() { return *m_toggle; }
  QGraphicsView& canvas() { return *m_canvas; }
  /// nullptr until the canvas was shown for the first time.
  const GraphScene* scene() const { return m_parts ? &m_parts->scene : nullptr; }
  const ChangeMarks* marks() const { return m_parts ? &m_parts->marks : nullptr; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  /// The base as another window would have it.
  struct Parts {
    Parts(const Session& session, const Theme& theme);
    Session base;
    PipelineComparison mirrored;  // from the base's side
    GraphScene scene;
    ChangeMarks marks;
  };

  void createCanvas();
  void createParts();
  void connectView();
  void refresh();
  void load();
  void showTimes();
  void mirror();
  void followView();
  void leadView();

  Session& m_session;
  PipelineComparison& m_comparison;
  GraphView& m_view;
  const Theme& m_theme;
  QAction* m_toggle;
  QGraphicsView* m_canvas;
  QLabel* m_title;  // over the canvas, which is as high as the other one
  std::unique_ptr<Parts> m_parts;
  std::shared_ptr<const PipelineDocument> m_shown;  // the base that is loaded
  bool m_isOfRun = false;                           // its file is a run, with times of its own
  std::shared_ptr<const RunRecord> m_times;         // of a baseline, which its nodes show
  std::shared_ptr<const ComparisonResult> m_mirroredOf;
  bool m_isMoving = false;
};

}  // namespace fuseline::ui
