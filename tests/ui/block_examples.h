// A window with a pipeline of blocks, for the tests of what is done inside of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/file_format.h"
#include "tests/ui/ui_test_support.h"
#include "ui/theme/format.h"

#include <initializer_list>

namespace fuseline::ui {

/// layer1 and layer2 (Layer: save, mlp, add), mlp (FeedForward: norm, fc1, act, fc2), norm.
struct Stack : Fixture {
  Stack() : Fixture(findTemplate("transformer-stack")->text) {}
  GraphScene& scene() { return window.scene(); }
  GraphView& canvas() { return window.canvas(); }
  CanvasScope& scope() { return window.scene().scope(); }
  const DocumentBlock& block(const char* name) const { return *session.pipeline().document().findBlock(name); }
  const DocumentBlock& feedForward() const { return block("FeedForward"); }
  QString bytes() const { return toQt(serialize(session.pipeline().document())); }
  void enter(std::initializer_list<const char*> path) {
    for (const char* id : path) (void)scope().enter(QString::fromUtf8(id));
  }
  void doubleClick(const char* id) {
    const QPoint place = window.canvas().mapFromScene(scene().node(id)->sceneBox().center());
    QTest::mouseDClick(window.canvas().viewport(), Qt::LeftButton, {}, place);
  }
  /// With the keyboard on the canvas.
  bool activate() {
    window.activateWindow();
    if (!QTest::qWaitForWindowActive(&window)) return false;
    canvas().setFocus();
    return true;
  }
};

}  // namespace fuseline::ui
