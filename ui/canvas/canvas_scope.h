// CanvasScope: which part of the document the canvas shows: the pipeline, or the inside of a block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/moved_places.h"
#include "ui/canvas/blocks/open_blocks.h"
#include "ui/session/session.h"

#include <QObject>
#include <QSet>
#include <QString>
#include <QStringList>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::ui {

/// Inside a block its definition stands for the pipeline: what reads or edits a pipeline works there unchanged. Shapes
/// are those of the instance that one came through, edits are of the block and so of all its instances.
class CanvasScope : public QObject {
  Q_OBJECT

 public:
  explicit CanvasScope(Session& session);

  /// The instances that one came through, outermost first; empty: the pipeline itself.
  const QStringList& path() const { return m_path; }
  bool isInside() const { return !m_levels.empty(); }
  /// Name of the shown block; empty for the pipeline.
  std::string blockName() const { return isInside() ? m_levels.back().block : std::string(); }
  /// Number of instances of the shown block in the whole pipeline.
  std::ptrdiff_t numInstances() const;
  /// Whether one can go into this op of what is shown.
  bool canEnter(const std::string& id) const;
  /// No: it is no instance, or its block cannot be shown. Then nothing has changed.
  Verdict enter(const QString& id);
  /// Leaves blocks until this number of levels remains; the instance that was left is selected.
  void leaveTo(qsizetype depth);
  /// Shows and selects "layer1.mlp.fc1", wherever that is. No: a block on the way cannot be shown.
  Verdict goTo(const QString& place);
  /// The same of "/blocks/FeedForward/ops/1/attributes/eps", in the first place in an instance where the block is.
  Verdict goToPointer(const QString& instance, const QString& pointer);

  /// "layer1.fc1": what an op of what is shown is called in the whole pipeline.
  std::string placeOf(const std::string& id) const;
  /// The same backwards, for the op of what is shown that this one is, or is in; empty: it is elsewhere.
  std::string idAt(const std::string& place) const;

  /// With room for blocks that are open in place.
  const PipelineDocument& document() const { return m_open.shown() ? *m_open.shown() : closedDocument(); }
  const PipelineDocument& closedDocument() const {
    return isInside() ? m_levels.back().document : m_session.pipeline().document();
  }
  const OpenBlocks& openBlocks() const { return m_open; }
  /// keptPlaces: of nodes that the canvas has placed automatically.
  void keepPlaces(std::function<NodePositions()> keptPlaces) { m_keptPlaces = std::move(keptPlaces); }
  /// Opens an instance of a block in place, or closes it. No: its block cannot be shown.
  Verdict toggleOpen(const std::string& id);
  const std::shared_ptr<const Analysis>& analysis() const {
    return isInside() ? m_levels.back().analysis : m_session.plan().analysis();
  }
  /// Applies an edit of document(); inside a block it becomes an edit of the block.
  bool apply(const Edit& edit, const QString& mergeKey = {});
  /// The same of an edit that gives ops other places: what the recipe and the switches say of ops inside follows.
  bool apply(const Edit& edit, std::span<const PlaceMoves> moves);
  /// Gives a node of what is shown another id, and selects it again.
  bool rename(const QString& id, const QString& newId);

  /// Ids of document(). The session's selection is that of the pipeline: of the instance, while one is inside.
  const QSet<QString>& selection() const { return isInside() ? m_selection : m_session.selection().ids(); }
  void select(const QSet<QString>& ids);
  QString singleSelection() const;

 Q_SIGNALS:
  /// Before pathChanged(), where somebody goes in or out: path() is still that of what is shown.
  void pathAboutToChange();
  /// Something else is shown, or is called otherwise.
  void pathChanged();
  void selectionChanged();
  /// The shown content changed.
  void contentChanged();
  /// A block was opened or closed in place.
  void openChanged();

 private:
  bool applyWhole(const Edit& whole, const QString& mergeKey);
  struct Level {
    std::string block;
    PipelineDocument document;
    std::shared_ptr<const Analysis> analysis;
  };
  /// Where an instance stood, so that it is known again under another id.
  struct Stand {
    std::string block;
    std::size_t index = 0;
    std::size_t numOps = 0;
  };

  Result<Level> levelInside(const std::string& instance) const;
  QString nameNow(qsizetype depth) const;
  Stand standOf(const std::string& instance) const;
  bool makeLevels();
  void makeRoom();
  void follow();
  Verdict goInto(const QStringList& path, const QSet<QString>& selection = {});
  void show(const QStringList& path, const QSet<QString>& selection);
  void selectInstance();
  void noteSelection();

  Session& m_session;
  OpenBlocks m_open;
  std::function<NodePositions()> m_keptPlaces;
  QStringList m_path;
  std::vector<Level> m_levels;  // one for each instance of the path
  std::vector<Stand> m_stands;  // of the same
  std::string m_whyNot;         // where the path could not be gone to its end
  QSet<QString> m_selection;    // inside
  bool m_isSelecting = false;
  bool m_isInstanceLost = false;  // from the session's selection, as the document has just changed
};

/// An edit of the inside of a block as one of the document. Parts that blocks cannot hold, such as a new block, stay
/// outside.
Edit editInBlock(const std::string& block, const Edit& edit);

}  // namespace fuseline::ui
