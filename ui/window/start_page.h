// StartPage: templates with pictures, recent files, tours and measured examples, over the window until something is
// chosen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/thumbnail.h"
#include "ui/runs/measured_examples.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/tours/tour.h"

#include <QCheckBox>
#include <QFrame>
#include <QMap>
#include <QPushButton>
#include <QStringList>
#include <QVBoxLayout>

#include <vector>

namespace fuseline::ui {

class TemplateCard;

/// It goes when something is chosen, by Esc, and by a press beside it; the pipeline behind it is there already.
class StartPage : public QWidget {
  Q_OBJECT

 public:
  /// settings: with which pipelines are planned for their pictures.
  StartPage(const Theme& theme, SessionSettings settings, QWidget* window);

  /// Paths, the newest first. Those that are no longer there are shown, but cannot be chosen.
  void setRecentFiles(const QStringList& paths);
  void setExamples(const std::vector<MeasuredExample>& examples);
  void setShownAtStart(bool isShown) { m_atStart->setChecked(isShown); }
  void setReopening(bool isReopening) { m_reopens->setChecked(isReopening); }

  /// In the middle of the window, above everything.
  void open();

 Q_SIGNALS:
  void templateChosen(const QString& name, const std::string& text);
  void fileChosen(const QString& path);
  void tourChosen(const Tour& tour);
  void openWanted();
  /// A pipeline without ops.
  void newWanted();
  /// A model of another program.
  void importWanted();
  void shownAtStartChanged(bool isShown);
  /// It is hidden now.
  void closed();
  void reopeningChanged(bool isReopening);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  bool focusNextPrevChild(bool next) override;
  void mousePressEvent(QMouseEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  QWidget* makeCards();
  QPushButton* startButton(const QString& icon, const QString& text, void (StartPage::*wanted)());
  QWidget* makeFiles();
  QLayout* makeTours();
  QLayout* makeFoot();
  void drawThumbnails();
  void refreshColors();
  void place();

  const Theme& m_theme;
  QFrame* m_page;
  ThumbnailMaker m_thumbnails;
  QMap<QString, TemplateCard*> m_cards;  // by the template's name
  QVBoxLayout* m_recent = nullptr;
  QVBoxLayout* m_examples = nullptr;
  QCheckBox* m_atStart = nullptr;
  QCheckBox* m_reopens = nullptr;
};

}  // namespace fuseline::ui
