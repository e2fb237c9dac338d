// A list of pages, the page, and a search in it.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/guide_window.h"

#include "core/document/guide.h"
#include "ui/theme/format.h"
#include "ui/widgets/screen_room.h"

#include <QHBoxLayout>
#include <QImage>
#include <QScrollBar>
#include <QTextBlock>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

constexpr QSize kSize = {1050, 720};
constexpr int kPictureWidthPx = 740;
constexpr int kListWidthPx = 240;
constexpr int kMarginPx = 14;

/// Pictures of the pages are resources, as wide as the text at most.
class GuideText : public QTextBrowser {
 public:
  using QTextBrowser::QTextBrowser;

  QVariant loadResource(int type, const QUrl& name) override {
    if (type != QTextDocument::ImageResource) return QTextBrowser::loadResource(type, name);
    const QImage picture(QStringLiteral(":/guide/") + name.path());
    return picture.width() <= kPictureWidthPx ? picture
                                              : picture.scaledToWidth(kPictureWidthPx, Qt::SmoothTransformation);
  }
};

/// An invalid block: there is no such heading.
QTextBlock headingIn(const QTextDocument& document, const QString& heading) {
  QTextBlock block = document.begin();
  while (block.isValid() && (block.blockFormat().headingLevel() == 0 || block.text() != heading)) block = block.next();
  return block;
}

}  // namespace

GuideWindow::GuideWindow(QWidget* parent)
    : QDialog(parent), m_pages(new QListWidget(this)), m_text(new GuideText(this)), m_search(new QLineEdit(this)) {
  setWindowTitle(tr("Guide"));
  resizeOnScreen(*this, kSize);
  for (const GuidePage& page : guidePages()) m_pages->addItem(toQt(page.title));
  m_pages->setFixedWidth(kListWidthPx);
  m_pages->setAccessibleName(tr("Pages"));
  m_text->setAccessibleName(tr("Page"));
  m_text->document()->setDocumentMargin(kMarginPx);
  m_search->setPlaceholderText(tr("Find in this page"));
  m_search->setAccessibleName(tr("Find in this page"));
  m_search->setClearButtonEnabled(true);
  auto* column = new QVBoxLayout();
  column->addWidget(m_search);
  column->addWidget(m_text, 1);
  auto* row = new QHBoxLayout(this);
  row->addWidget(m_pages);
  row->addLayout(column, 1);
  connect(m_pages, &QListWidget::currentRowChanged, this, &GuideWindow::load);
  connect(m_search, &QLineEdit::returnPressed, this, &GuideWindow::findNext);
  connect(m_search, &QLineEdit::textEdited, this, [this] {
    m_text->moveCursor(QTextCursor::Start);
    findNext();
  });
  m_pages->setCurrentRow(0);
}

void GuideWindow::load(int page) {
  if (page < 0) return;
  setWindowTitle(tr("Guide"));
  m_text->setMarkdown(toQt(guidePages()[static_cast<std::size_t>(page)].text));
}

void GuideWindow::bringToFront() {
  show();
  raise();
  activateWindow();
}

/// A list that gets the keyboard chooses its first page.
void GuideWindow::showCard(const QString& title, const QString& card) {
  m_text->setFocus();
  bringToFront();
  m_pages->setCurrentRow(-1);
  setWindowTitle(title);
  m_text->setHtml(card);
}

void GuideWindow::showPage(const QString& name, const QString& heading) {
  for (int row = 0; row < m_pages->count(); ++row)
    if (toQt(guidePages()[static_cast<std::size_t>(row)].name) == name) m_pages->setCurrentRow(row);
  bringToFront();
  const QTextBlock block = headingIn(*m_text->document(), heading);
  m_text->setTextCursor(block.isValid() ? QTextCursor(block) : QTextCursor(m_text->document()));
  const int top = m_text->cursorRect().top() + m_text->verticalScrollBar()->value() - kMarginPx;
  m_text->verticalScrollBar()->setValue(block.isValid() ? top : 0);
}

/// Behind the last one it begins anew.
void GuideWindow::findNext() {
  if (m_search->text().isEmpty() || m_text->find(m_search->text())) return;
  m_text->moveCursor(QTextCursor::Start);
  m_text->find(m_search->text());
}

}  // namespace fuseline::ui
