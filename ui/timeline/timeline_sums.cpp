// The table below the timeline.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_sums.h"

#include "ui/theme/format.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/table_copying.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QSettings>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr auto kByKey = "timeline/sumsBy";

/// Draws a faint bar behind a sum and a line above those of the tracks.
class SumDelegate : public RoomyDelegate {
 public:
  SumDelegate(const Theme& theme, QObject* parent) : RoomyDelegate(parent), m_theme(theme) {}

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    if (const double share = std::min(index.data(TimelineSumsModel::BarRole).toDouble(), 1.0); share > 0.0) {
      QColor color = m_theme.colors().accent;
      color.setAlpha(m_theme.isDark() ? 80 : 60);
      QRectF bar = QRectF(option.rect).adjusted(6, 3, -6, -3);
      bar.setWidth(bar.width() * share);
      painter->fillRect(bar, color);
    }
    QStyledItemDelegate::paint(painter, option, index);
    const auto isTotal = [](const QModelIndex& row) { return row.data(TimelineSumsModel::TotalRole).toBool(); };
    if (!isTotal(index) || isTotal(index.siblingAtRow(index.row() - 1))) return;
    painter->setPen(m_theme.colors().border);
    painter->drawLine(option.rect.topLeft(), option.rect.topRight());
  }

 private:
  const Theme& m_theme;
};

QTreeView* makeView(TimelineSumsModel& model, QWidget* parent) {
  auto* view = new QTreeView(parent);
  view->setModel(&model);
  return view;
}

/// By TimelineSumsModel::Column.
std::vector<TableColumns::Column> columnsOfSums() {
  std::vector<TableColumns::Column> columns;
  for (const char* id : {"name", "plan", "pass", "count", "sum", "median", "share", "idle", "bytes", "bandwidth"})
    columns.push_back({QString::fromLatin1(id)});
  return columns;
}

QStringList namesOf(const std::vector<TimelineTrack>& tracks) {
  QStringList names;
  for (const TimelineTrack& track : tracks) names.append(track.name);
  return names;
}

}  // namespace

TimelineSums::TimelineSums(Session& session, const Theme& theme, bool isKept, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_caption(new ElidedLabel(this)),
      m_note(new QLineEdit(this)),
      m_by(new QComboBox(this)),
      m_close(new QToolButton(this)),
      m_model(new TimelineSumsModel(this)),
      m_view(makeView(*m_model, this)),
      m_columns(*m_view, columnsOfSums(), isKept ? QStringLiteral("timeline/columns") : QString()),
      m_isKept(isKept) {
  createView();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(makeHead());
  layout->addWidget(m_view, 1);
  refresh();
}

QHBoxLayout* TimelineSums::makeHead() {
  m_note->setPlaceholderText(tr("Add a note (N)"));
  m_note->setAccessibleName(tr("Note on the time range"));
  m_note->setToolTip(tr("Note on the time range; saved next to the run file and included in reports"));
  m_by->addItems({tr("By step"), tr("By category of ops"), tr("By kernel")});
  m_by->setAccessibleName(tr("Group the time range by"));
  m_by->setToolTip(tr("One row per step, op category or kernel. A step without traced kernels is its own row"));
  if (m_isKept) m_by->setCurrentIndex(std::clamp(QSettings().value(kByKey, 0).toInt(), 0, m_by->count() - 1));
  m_close->setText(tr("Close"));
  m_close->setToolTip(tr("Hide the table (Q)"));
  m_close->setAccessibleName(tr("Hide the table of the time range"));
  m_close->setAutoRaise(true);
  auto* row = new QHBoxLayout();
  row->setContentsMargins(10, 4, 8, 4);
  row->addWidget(m_caption);
  row->addWidget(m_note, 1);
  row->addWidget(m_by);
  row->addWidget(m_close);
  connect(m_by, &QComboBox::currentIndexChanged, this, [this](int by) {
    if (m_isKept) QSettings().setValue(kByKey, by);
    refresh();
  });
  m_note->installEventFilter(this);
  connect(m_note, &QLineEdit::editingFinished, this, &TimelineSums::takeNote);
  connect(m_note, &QLineEdit::returnPressed, this, &TimelineSums::noteFinished);
  connect(m_close, &QToolButton::clicked, this, &TimelineSums::closeWanted);
  return row;
}

void TimelineSums::createView() {
  m_view->setItemDelegate(new SumDelegate(m_theme, m_view));
  m_view->setAlternatingRowColors(true);
  m_view->setUniformRowHeights(true);
  m_view->setRootIsDecorated(false);
  m_view->setFrameShape(QFrame::NoFrame);
  m_view->setAccessibleName(tr("Sums over the time range"));
  makeCopyable(*m_view);
  m_view->addActions({m_columns.sorter()->menuAction(), m_columns.chooser()->menuAction()});
  connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &TimelineSums::takeCurrent);
  connect(&m_theme, &Theme::changed, m_view->viewport(), qOverload<>(&QWidget::update));
}

void TimelineSums::setArea(const std::vector<TimelineTrack>& tracks, const std::optional<TimelineArea>& area) {
  m_tracks = tracks;
  m_area = area;
  refresh();
}

void TimelineSums::setNote(const QString& note) {
  if (m_note->hasFocus() && m_note->isModified() && note == m_shownNote) return;  // does not interrupt typing
  m_shownNote = note;
  m_note->setText(note);
}

/// Escape leaves the note as it was.
bool TimelineSums::eventFilter(QObject* watched, QEvent* event) {
  const bool isPress = event->type() == QEvent::KeyPress;
  if (!isPress && event->type() != QEvent::ShortcutOverride) return QWidget::eventFilter(watched, event);
  if (static_cast<QKeyEvent*>(event)->key() != Qt::Key_Escape) return false;
  event->accept();
  if (!isPress) return true;
  m_note->setText(m_shownNote);
  Q_EMIT noteFinished();
  return true;
}

/// A field that is left as it was says nothing.
void TimelineSums::takeNote() {
  const QString note = m_note->text().trimmed();
  if (note != std::exchange(m_shownNote, note)) Q_EMIT noteWanted(note);
}

void TimelineSums::refresh() {
  m_note->setVisible(m_area.has_value());
  if (!m_area) {
    m_caption->setWholeText(tr("Shift+drag: select a time range · R: select the range of the selected box"));
    m_model->setSums({}, 1.0, {});
  } else {
    m_caption->setWholeText(tr("%1, starting at %2, in %3")
                                .arg(formatDurationNs(m_area->lengthNs()), formatDurationNs(m_area->startNs),
                                     counted(static_cast<qsizetype>(m_area->rows.size()), tr("row"), tr("rows"))));
    m_model->setSums(sumsOf(m_tracks, *m_area, by()), m_area->lengthNs(), namesOf(m_tracks));
  }
  m_columns.refresh();
}

void TimelineSums::takeCurrent(const QModelIndex& current) {
  const QStringList owners = current.data(TimelineSumsModel::OwnersRole).toStringList();
  if (!owners.isEmpty()) m_session.selection().select(QSet<QString>(owners.begin(), owners.end()));
}

}  // namespace fuseline::ui
