// Arrows show the direction of a pass through the pipeline, which the optimizer has not.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/pass_look.h"

#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

namespace fuseline::ui {

QString passLabel(const QString& name) {
  if (name == toQt(phaseName(Phase::Forward))) return translated("Forward →");
  if (name == toQt(phaseName(Phase::Backward))) return translated("← Backward");
  return name == toQt(phaseName(Phase::Optimizer)) ? translated("Optimizer") : name;
}

QColor passColor(const ThemeColors& colors, Phase phase) {
  switch (phase) {
    case Phase::Forward: return colors.forward;
    case Phase::Backward: return colors.backward;
    case Phase::Optimizer: return colors.dimText;
  }
  return colors.dimText;
}

}  // namespace fuseline::ui
