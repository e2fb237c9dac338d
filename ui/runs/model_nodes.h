// ModelNodes: the ops of an imported ONNX model and the nodes that they stand for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_import.h"
#include "ui/session/session.h"

#include <QDialog>
#include <QTreeView>

#include <vector>

namespace fuseline::ui {

class ModelNodes : public QDialog {
  Q_OBJECT

 public:
  /// Selecting a row selects its op, or the instance of a block that it is in.
  ModelNodes(Session& session, const std::vector<ImportedNodes>& rows, const QString& model, QWidget& window);
  QTreeView& view() { return *m_view; }

 private:
  QTreeView* m_view;
};

}  // namespace fuseline::ui
