// LastEdits: what the last change of the open pipeline was.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/open_pipeline.h"

#include <QObject>

#include <optional>
#include <vector>

namespace fuseline::ui {

/// A part of every OpenPipeline.
class LastEdits : public QObject {
  Q_OBJECT

 public:
  using Edits = std::optional<std::vector<Edit>>;

  /// In order; empty after a save. nullopt: everything may be another.
  static const Edits& of(const OpenPipeline& pipeline);
  /// The pipeline does this before it tells of the change.
  static void set(OpenPipeline& pipeline, Edits edits);

 private:
  using QObject::QObject;

  Edits m_edits;
};

}  // namespace fuseline::ui
