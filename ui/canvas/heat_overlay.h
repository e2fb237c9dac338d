// HeatOverlay: figures of the last run on the nodes that they were measured of, one kind at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/by_op/changed_ops.h"
#include "core/profile/by_op/measured_ops.h"
#include "ui/canvas/node_look.h"
#include "ui/session/session.h"

#include <QObject>
#include <QThreadPool>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

/// Time: of each op in each pass. Share: of the sum of all steps. Roofline: time over the least time by the device's
/// peaks. Change: time beside that of the reference baseline. Error: RMS error of the last numerics run, which
/// MeasuredLooks shows.
enum class HeatMode { Off, Time, Share, Roofline, Change, Error };

/// Ends of the color scale, and what it is a scale of.
struct HeatScale {
  QString title;
  QString least;
  QString most;
  bool isOfChanges = false;

  /// place: 0 at the least, 1 at the most.
  QColor colorAt(double place) const { return isOfChanges ? divergingColor(2.0 * place - 1.0) : heatColor(place); }
};

class HeatOverlay : public QObject {
  Q_OBJECT

 public:
  /// The session lives as long as this.
  explicit HeatOverlay(const Session& session);
  ~HeatOverlay() override;

  HeatMode mode() const { return m_mode; }
  /// As the user chose it: later runs do not change it.
  void choose(HeatMode mode);
  /// The next mode that has something to show, or off. Changes are left out without a baseline.
  void chooseNext();
  /// A new measurement is shown, unless the user chose something else.
  void suggest(HeatMode mode);

  /// Times of the last run; nullptr: there are none of this pipeline as it is.
  const MeasuredOps* measured() const;
  /// Changes from the reference baseline to the last run, once they are computed. Empty: one of them is missing, or
  /// they share no op.
  const std::map<std::string, OpChange>& changes() const;
  /// Halves of nodes: forward on the left, backward on the right. Nothing for a run of another pipeline.
  void addTo(std::vector<NodeLook>& looks) const;
  /// Nothing: no node has a color.
  std::optional<HeatScale> scale() const;
  /// What is shown and how, for the status line.
  QString description() const;

 Q_SIGNALS:
  void changed();

 private:
  void show(HeatMode mode);
  std::optional<HeatHalf> halfOf(const OpPass& pass, const MeasuredOps& all) const;
  void addChangesTo(std::vector<NodeLook>& looks) const;
  void compare();

  const Session& m_session;
  HeatMode m_mode = HeatMode::Error;
  bool m_isChosen = false;
  mutable std::optional<MeasuredOps> m_measured;  // of the last run; nothing: not computed yet
  std::map<std::string, OpChange> m_changes;
  quint64 m_number = 0;  // of the newest comparison; older ones are dropped
  bool m_isComparing = false;
  QThreadPool m_pool;
};

}  // namespace fuseline::ui
