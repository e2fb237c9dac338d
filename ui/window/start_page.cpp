// The start page: cards on the left, files on the right.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/start_page.h"

#include "core/document/file_format.h"
#include "ui/theme/format.h"
#include "ui/window/template_card.h"

#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollArea>
#include <QToolButton>

#include <algorithm>

namespace fuseline::ui {

namespace {

constexpr int kColumns = 2;
constexpr int kMaxFiles = 6;
constexpr int kFilesWidthPx = 300;
constexpr int kPageMarginPx = 40;
constexpr QSize kLargestSize = {1000, 790};
constexpr int kShade = 110;  // of 255, over the window behind

QLabel* heading(const QString& text) {
  auto* label = new QLabel(text);
  label->setFont(scaledFont(1.1, QFont::DemiBold));
  return label;
}

/// A line that opens a file or begins a tour; too long for its place, it ends with "...".
QToolButton* lineButton(const QString& text, const QString& tip) {
  auto* button = new QToolButton();
  button->setAutoRaise(true);
  button->setToolTip(tip);
  button->setFocusPolicy(Qt::StrongFocus);
  button->setText(button->fontMetrics().elidedText(text, Qt::ElideMiddle, kFilesWidthPx - 24));
  button->setAccessibleName(text);
  return button;
}

void clear(QLayout& layout) {
  while (QLayoutItem* item = layout.takeAt(0)) {
    delete item->widget();
    delete item;
  }
}

QLabel* remark(const QString& text) {
  auto* label = new QLabel(text);
  label->setWordWrap(true);
  label->setForegroundRole(QPalette::PlaceholderText);
  return label;
}

/// Down only.
QScrollArea* scrolled(QWidget& content, const QString& name) {
  auto* scroll = new QScrollArea();
  scroll->setAccessibleName(name);
  scroll->setWidget(&content);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  return scroll;
}

}  // namespace

StartPage::StartPage(const Theme& theme, SessionSettings settings, QWidget* window)
    : QWidget(window),
      m_theme(theme),
      m_page(new QFrame(this)),
      m_thumbnails(theme, std::move(settings), TemplateCard::kPictureSize, this) {
  setObjectName(QStringLiteral("start"));
  setAccessibleName(tr("Start page"));
  m_page->setFrameShape(QFrame::StyledPanel);
  m_page->setAutoFillBackground(true);
  hide();
  window->installEventFilter(this);
  auto* columns = new QHBoxLayout();
  columns->setSpacing(24);
  columns->addWidget(makeCards(), 1);
  columns->addWidget(makeFiles());
  auto* layout = new QVBoxLayout(m_page);
  layout->setContentsMargins(24, 18, 24, 14);
  layout->setSpacing(10);
  layout->addLayout(columns, 1);
  layout->addLayout(makeFoot());
  connect(&m_thumbnails, &ThumbnailMaker::made, this,
          [this](const QString& name, const QPixmap& picture) { m_cards.value(name)->setPicture(picture); });
  connect(&theme, &Theme::changed, this, &StartPage::refreshColors);
}

QWidget* StartPage::makeCards() {
  auto* cards = new QWidget();
  auto* grid = new QGridLayout(cards);
  grid->setContentsMargins(2, 2, 10, 2);
  grid->setSpacing(12);
  int number = 0;
  for (const DocumentTemplate& entry : documentTemplates()) {
    const QString name = toQt(entry.name);
    auto* card = new TemplateCard(name, toQt(entry.summary), m_theme);
    connect(card, &TemplateCard::clicked, this, [this, name, text = entry.text] {
      hide();
      Q_EMIT templateChosen(name, text);
    });
    grid->addWidget(card, number / kColumns, number % kColumns);
    m_cards.insert(name, card);
    ++number;
  }
  auto* column = new QWidget();
  auto* layout = new QVBoxLayout(column);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(heading(tr("New from a template")));
  layout->addWidget(scrolled(*cards, tr("Templates")), 1);
  return column;
}

QWidget* StartPage::makeFiles() {
  auto* column = new QWidget();
  auto* layout = new QVBoxLayout(column);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(6);
  m_recent = new QVBoxLayout();
  m_examples = new QVBoxLayout();
  layout->addWidget(startButton(QStringLiteral("new"), tr("Empty pipeline"), &StartPage::newWanted));
  layout->addWidget(startButton(QStringLiteral("open"), tr("Open a pipeline or a run..."), &StartPage::openWanted));
  layout->addWidget(startButton(QStringLiteral("import"), tr("Import model..."), &StartPage::importWanted));
  layout->addSpacing(10);
  layout->addWidget(heading(tr("Recent files")));
  layout->addLayout(m_recent);
  layout->addSpacing(10);
  layout->addWidget(heading(tr("Guided tours")));
  layout->addLayout(makeTours());
  layout->addSpacing(10);
  layout->addWidget(heading(tr("Measured examples")));
  layout->addLayout(m_examples);
  layout->addStretch(1);
  QScrollArea* scroll = scrolled(*column, tr("Files and tours"));
  scroll->setFixedWidth(kFilesWidthPx);
  return scroll;
}

QPushButton* StartPage::startButton(const QString& icon, const QString& text, void (StartPage::*wanted)()) {
  auto* button = new QPushButton(m_theme.icon(icon), text);
  connect(button, &QPushButton::clicked, this, [this, wanted] {
    hide();
    Q_EMIT(this->*wanted)();
  });
  return button;
}

QLayout* StartPage::makeTours() {
  auto* lines = new QVBoxLayout();
  for (const Tour& tour : tours()) {
    QToolButton* button = lineButton(tour.title, tour.summary);
    connect(button, &QToolButton::clicked, this, [this, &tour] {
      hide();
      Q_EMIT tourChosen(tour);
    });
    lines->addWidget(button);
  }
  return lines;
}

QLayout* StartPage::makeFoot() {
  m_atStart = new QCheckBox(tr("Show this page when Fuseline starts"));
  m_atStart->setChecked(true);
  connect(m_atStart, &QCheckBox::toggled, this, &StartPage::shownAtStartChanged);
  m_reopens = new QCheckBox(tr("Reopen the last pipeline"));
  m_reopens->setToolTip(tr("Open the pipeline of the last closed window when Fuseline starts"));
  connect(m_reopens, &QCheckBox::toggled, this, &StartPage::reopeningChanged);
  auto* close = new QPushButton(tr("Close"));
  close->setToolTip(tr("Close this page and show the pipeline (Esc)"));
  connect(close, &QPushButton::clicked, this, &StartPage::hide);
  auto* row = new QHBoxLayout();
  row->addWidget(m_atStart);
  row->addWidget(m_reopens);
  row->addStretch(1);
  row->addWidget(close);
  return row;
}

void StartPage::setRecentFiles(const QStringList& paths) {
  clear(*m_recent);
  for (const QString& path : paths.mid(0, kMaxFiles)) {
    QToolButton* button = lineButton(QFileInfo(path).fileName(), path);
    button->setEnabled(QFileInfo::exists(path));
    connect(button, &QToolButton::clicked, this, [this, path] {
      hide();
      Q_EMIT fileChosen(path);
    });
    m_recent->addWidget(button);
  }
  if (paths.isEmpty()) m_recent->addWidget(remark(tr("None yet.")));
}

void StartPage::setExamples(const std::vector<MeasuredExample>& examples) {
  clear(*m_examples);
  for (const MeasuredExample& example : examples) {
    QToolButton* button = lineButton(example.line, example.problem.isEmpty() ? example.text : example.problem);
    button->setAccessibleName(example.text);
    button->setEnabled(example.problem.isEmpty());
    connect(button, &QToolButton::clicked, this, [this, path = example.path] {
      hide();
      Q_EMIT fileChosen(path);
    });
    m_examples->addWidget(button);
  }
  if (examples.empty())
    m_examples->addWidget(
        remark(tr("No measured examples installed. Record some on a GPU:\nfuseline-bench gpu --records FOLDER")));
}

void StartPage::open() {
  place();
  show();
  raise();
  drawThumbnails();
  m_cards.value(toQt(documentTemplates().front().name))->setFocus(Qt::OtherFocusReason);
}

void StartPage::place() {
  setGeometry(parentWidget()->rect());
  const QSize room = size() - QSize(2 * kPageMarginPx, 2 * kPageMarginPx);
  QRect area(QPoint(), room.boundedTo(kLargestSize));
  area.moveCenter(rect().center());
  m_page->setGeometry(area);
}

void StartPage::drawThumbnails() {
  m_thumbnails.clear();
  for (const DocumentTemplate& entry : documentTemplates()) m_thumbnails.request(toQt(entry.name), entry.text);
}

void StartPage::refreshColors() {
  if (isVisible()) drawThumbnails();
}

bool StartPage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == parentWidget() && event->type() == QEvent::Resize) place();
  return QWidget::eventFilter(watched, event);
}

/// The window behind it gets no focus.
bool StartPage::focusNextPrevChild(bool next) {
  QWidget* const start = focusWidget();
  for (QWidget* at = start; at;) {
    at = next ? at->nextInFocusChain() : at->previousInFocusChain();
    if (at == start) break;
    if (!isAncestorOf(at) || !at->isVisible() || !at->isEnabled() || !(at->focusPolicy() & Qt::TabFocus)) continue;
    at->setFocus(next ? Qt::TabFocusReason : Qt::BacktabFocusReason);
    return true;
  }
  return false;
}

void StartPage::mousePressEvent(QMouseEvent* event) {
  if (!m_page->geometry().contains(event->pos())) hide();
}

void StartPage::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  if (!event->spontaneous()) Q_EMIT closed();
}

void StartPage::paintEvent(QPaintEvent* /*event*/) { QPainter(this).fillRect(rect(), QColor(0, 0, 0, kShade)); }

}  // namespace fuseline::ui
