// Choices of the start page lead to files, templates and tours.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/start_commands.h"

#include "ui/runs/measured_examples.h"
#include "ui/theme/format.h"

#include <QFileInfo>
#include <QSettings>

namespace fuseline::ui {

namespace {
constexpr auto kPageKey = "start/isShown";
constexpr auto kReopensKey = "start/reopens";
constexpr auto kLastFileKey = "session/lastFile";
}  // namespace

StartCommands::StartCommands(Session& session, const Theme& theme, FileCommands& files, TourBar& tourBar,
                             Persistence persistence, QWidget& window)
    : QObject(&window),
      m_files(files),
      m_tourBar(tourBar),
      m_persistence(persistence),
      m_page(new StartPage(theme, session.settings(), &window)) {
  m_page->setShownAtStart(isPageWanted());
  m_page->setReopening(reopens());
  connectPage();
}

void StartCommands::connectPage() {
  connect(m_page, &StartPage::openWanted, &m_files, &FileCommands::chooseAndOpen);
  connect(m_page, &StartPage::newWanted, &m_files, &FileCommands::newDocument);
  connect(m_page, &StartPage::importWanted, &m_files, &FileCommands::chooseAndImport);
  connect(m_page, &StartPage::templateChosen, &m_files,
          [this](const QString& name, const std::string& text) { m_files.newFromTemplate(text, name); });
  connect(m_page, &StartPage::fileChosen, &m_files, [this](const QString& path) { m_files.openAll({path}); });
  connect(m_page, &StartPage::tourChosen, this, &StartCommands::startTour);
  connect(m_page, &StartPage::reopeningChanged, this, [this](bool isOn) { keep(kReopensKey, isOn); });
  connect(m_page, &StartPage::shownAtStartChanged, this, [this](bool isOn) { keep(kPageKey, isOn); });
}

void StartCommands::keep(const char* key, bool value) const {
  if (m_persistence == Persistence::Settings) QSettings().setValue(key, value);
}

void StartCommands::show() {
  m_page->setRecentFiles(m_files.recentFiles());
  m_page->setExamples(measuredExamples(m_files.exampleFolders()));
  m_page->open();
}

bool StartCommands::isPageWanted() const {
  return m_persistence == Persistence::Settings && QSettings().value(kPageKey, true).toBool();
}

void StartCommands::startTour(const Tour& tour) {
  m_tourBar.end();
  if (m_files.newFromTemplate(findTemplate(tour.pipeline)->text, toQt(tour.pipeline))) m_tourBar.start(tour);
}

bool StartCommands::reopens() const {
  return m_persistence == Persistence::Settings && QSettings().value(kReopensKey, true).toBool();
}

QString StartCommands::fileToReopen() const {
  const QString file = reopens() ? QSettings().value(kLastFileKey).toString() : QString();
  return QFileInfo::exists(file) ? file : QString();
}

void StartCommands::remember(const QString& file) const { QSettings().setValue(kLastFileKey, file); }

}  // namespace fuseline::ui
