// fuseline-designer: design, fuse, run and measure pipelines in a window.
// SPDX-License-Identifier: Apache-2.0
#include "app/backends.h"
#include "app/designer/open_once.h"
#include "app/designer/screenshot.h"
#include "core/export/graphviz/layouts.h"
#include "core/profile/run_folder.h"
#include "core/support/visible_text.h"
#include "ui/machines/ask_pass.h"
#include "ui/session/autosave.h"
#include "ui/session/baselines.h"
#include "ui/theme/system_palette.h"
#include "ui/window/desktop.h"
#include "ui/window/guarded_application.h"
#include "ui/window/main_window.h"
#include "ui/window/run_notice.h"
#include "ui/window/workspaces.h"

#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QFileInfo>
#include <QIcon>
#include <QProcess>
#include <QSessionManager>
#include <QSettings>
#include <QSize>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTextStream>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace fuseline;

void nameApplication() {
  QCoreApplication::setOrganizationName("fuseline");
  QCoreApplication::setApplicationName("fuseline-designer");
  QCoreApplication::setApplicationVersion(FUSELINE_VERSION);
}

void addOptions(QCommandLineParser& parser) {
  parser.setApplicationDescription(QApplication::translate(
      "main", "Design pipelines of TransformerEngine-style ops, see how they fuse and why, and measure it."));
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addPositionalArgument(
      "files",
      QApplication::translate("main",
                              "Pipelines (*.fuseline), measured runs (*.fuserun), or "
                              "drawings and reports that contain one. Each file opens in its own window."),
      "[files]");
  const auto add = [&](const QString& name, const char* help, const QString& value = {}) {
    parser.addOption({name, QApplication::translate("main", help), value});
  };
  add("worker", "Command that runs pipelines, such as \"ssh gpu-box fuseline worker\".", "command");
  add("theme", "system, light, dark or high-contrast.", "theme");
  add("density", "comfortable or compact.", "density");
  add("screenshot", "Save a screenshot of the window and exit.", "file.png");
  add("drawing", "Save a drawing of the pipeline and exit. The file extension selects SVG, PNG or PDF.", "file.svg");
  add("without-pipeline", "Do not embed the pipeline in the drawing. Such a drawing cannot be opened again.");
  add("size", "Window size for --screenshot, such as 1500x940.", "WxH");
  add("scale", "Device pixels per logical pixel of a screenshot, such as 2; from 1 to 4 for a PNG drawing.", "factor");
  add("compare",
      "Show the differences from this pipeline. With Git: git difftool --extcmd \"fuseline-designer --compare\".",
      "old.fuseline");
  add("baseline", "Pin this run as a baseline; repeatable.", "run.fuserun");
  add("select", "Select this op. \"layer1.fc1\" opens the block of layer1 and selects fc1.", "op");
  add("pane",
      "Bring this pane to the front: palette, inspector, whyNot, suggestions, plan, timings, timeline, flame, "
      "roofline, "
      "memory, numerics, tensor, sweep, runs, changes, rules, problems, outline, log, history, or start (the start "
      "page).",
      "pane");
  add("workspace", "Arrange the panes for a task: design, explain, profile or compare.", "name");
  add("new-window", "Open the file even if another window shows it. Otherwise that window comes to the front.");
  add("no-restore", "Do not reopen the last pipeline.");
  add("reset-settings", "Reset all settings (layout, shortcuts, recent files) to defaults.");
  add("run", "Run the pipeline before the screenshot.");
  add("numerics", "Measure the numerics before the screenshot.");
  add("capture", "Capture this tensor before the screenshot.", "tensor");
}

Result<void> pinBaselines(const QCommandLineParser& parser, ui::Session& session) {
  for (const QString& file : parser.values("baseline")) {
    Result<RunRecord> run = loadNotedRun(file.toStdString());
    if (!run) return run.error();
    const Result<void> pinned = session.baselines().pin(std::move(*run), QFileInfo(file).absoluteFilePath());
    if (!pinned) return pinned;
  }
  return {};
}

QStringList workerCommand(const QCommandLineParser& parser) {
  if (parser.isSet("worker")) return QProcess::splitCommand(parser.value("worker"));
  return {QDir(QApplication::applicationDirPath()).filePath("fuseline"), "worker"};
}

std::optional<RunPurpose> runBefore(const QCommandLineParser& parser) {
  if (parser.isSet("numerics")) return RunPurpose::Numerics;
  if (parser.isSet("capture")) return RunPurpose::Capture;
  return parser.isSet("run") ? std::optional(RunPurpose::Times) : std::nullopt;
}

bool isPicture(const QCommandLineParser& parser) { return parser.isSet("screenshot") || parser.isSet("drawing"); }

QMap<QString, ui::ThemeChoice> themeNames() {
  return {{"light", ui::ThemeChoice::Light},
          {"dark", ui::ThemeChoice::Dark},
          {"high-contrast", ui::ThemeChoice::HighContrast}};
}

/// Errors: an unknown theme.
Result<void> checkTheme(const QCommandLineParser& parser) {
  const QString name = parser.value("theme");
  if (name.isEmpty() || name == "system" || themeNames().contains(name)) return {};
  return Error{QApplication::translate("main", "--theme %1: expected system, light, dark or high-contrast.")
                   .arg(name)
                   .toStdString()};
}

/// Errors: an unknown density.
Result<ui::Density> densityChoice(const QCommandLineParser& parser) {
  const QString name = parser.value("density");
  if (name == "comfortable" || (name.isEmpty() && isPicture(parser))) return ui::Density::Comfortable;
  if (name == "compact") return ui::Density::Compact;
  if (name.isEmpty()) return static_cast<ui::Density>(QSettings().value("view/density", 0).toInt());
  return Error{
      QApplication::translate("main", "--density %1: expected comfortable or compact.").arg(name).toStdString()};
}

ui::ThemeChoice keptTheme() { return static_cast<ui::ThemeChoice>(QSettings().value("view/theme", 0).toInt()); }

ui::ThemeChoice themeChoice(const QCommandLineParser& parser) {
  const QString name = parser.value("theme");
  if (themeNames().contains(name)) return themeNames().value(name);
  if (name == "system" || isPicture(parser)) return ui::ThemeChoice::System;
  return keptTheme();
}

/// The scale of a window must be known before the first window system call, so before the parser can run.
void applyScale(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const auto isDrawing = [](std::string_view each) { return each.starts_with("--drawing"); };
  if (std::ranges::any_of(arguments, isDrawing)) return;  // which has a scale of its own
  constexpr std::string_view kOption = "--scale";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view each = arguments[i];
    std::string_view scale;
    if (each == kOption && i + 1 < arguments.size()) scale = arguments[i + 1];
    if (each.starts_with("--scale=")) scale = each.substr(kOption.size() + 1);
    if (!scale.empty()) qputenv("QT_SCALE_FACTOR", QByteArray(scale.data(), static_cast<qsizetype>(scale.size())));
  }
}

/// Where nothing else was asked for and nothing is to be recovered. False: there is none, or it could not be read,
/// which the window says.
bool reopenLast(const QCommandLineParser& parser, ui::MainWindow& window, const std::optional<ui::Autosave>& autosave) {
  const bool isAsked = !parser.positionalArguments().isEmpty() || parser.isSet("no-restore") || parser.isSet("compare");
  if (isAsked || !autosave || !autosave->leftovers().empty()) return false;
  const QString last = window.start().fileToReopen();
  return !last.isEmpty() && window.openFile(last);
}

/// False when the file could not be read, which the window says.
bool openFirst(ui::MainWindow& window, ui::Session& session, const QStringList& files) {
  if (!files.isEmpty()) return window.openFile(files.front());
  constexpr const char* kExample = "llama-mlp";
  session.openText(findTemplate(kExample)->text, QString::fromLatin1(kExample));
  return true;
}

/// The arguments that start a window like this one with a file; an empty path: without a file.
QStringList windowArguments(const QCommandLineParser& parser, const QString& path) {
  QStringList arguments = {QStringLiteral("--no-restore")};
  if (parser.isSet("worker")) arguments << QStringLiteral("--worker") << parser.value("worker");
  if (!path.isEmpty()) arguments << QStringLiteral("--") << path;
  return arguments;
}

/// A comparison or other panes are for a window of their own.
bool isShownElsewhere(const QCommandLineParser& parser) {
  const QStringList files = parser.positionalArguments();
  const bool isPlain = files.size() == 1 && !isPicture(parser) && !parser.isSet("new-window") &&
                       !parser.isSet("compare") && !parser.isSet("baseline") && !parser.isSet("worker");
  return isPlain && OpenOnce::showOther(files.front());
}

/// A process of its own, so that windows neither wait for each other nor end together.
bool openWindow(const QCommandLineParser& parser, const QString& path) {
  return QProcess::startDetached(QApplication::applicationFilePath(), windowArguments(parser, path));
}

/// A desktop that ends starts this again when it is back; what is not saved stays in the journal.
void followSession(QApplication& app, const QCommandLineParser& parser, ui::Session& session, ui::Autosave& autosave) {
  QObject::connect(&app, &QGuiApplication::commitDataRequest, &session, [&autosave] { autosave.leaveBehind(); });
  QObject::connect(&app, &QGuiApplication::saveStateRequest, &session, [&](QSessionManager& manager) {
    manager.setRestartCommand(QStringList{QApplication::applicationFilePath()} +
                              windowArguments(parser, session.pipeline().path()));
  });
}

/// Beside the installed program, or else in the sources that it was built from.
QStringList exampleFolders() {
  const QDir installed(QApplication::applicationDirPath() + "/" FUSELINE_INSTALLED_EXAMPLES "/runs");
  if (installed.exists()) return {installed.canonicalPath()};
  return {QStringLiteral(FUSELINE_SOURCE_EXAMPLES "/runs")};
}

/// Over the example that stands there first; not over what is to be recovered.
void offerStartPage(ui::MainWindow& window, const std::optional<ui::Autosave>& autosave, const QStringList& files) {
  const bool isFree = files.isEmpty() && autosave && autosave->leftovers().empty();
  if (isFree && window.start().isPageWanted()) window.start().show();
}

QString journalFolder() {
  return QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + QStringLiteral("/autosave");
}

/// "1500x940"; nothing for another text.
std::optional<QSize> sizeFrom(const QString& text) {
  const QStringList parts = text.split(u'x');
  if (parts.size() != 2) return std::nullopt;
  const QSize size(parts[0].toInt(), parts[1].toInt());
  return size.isEmpty() ? std::nullopt : std::optional(size);
}

/// False where the text is no size.
bool resizeTo(ui::MainWindow& window, const QString& text) {
  if (text.isEmpty()) return true;
  const std::optional<QSize> size = sizeFrom(text);
  if (!size) return false;
  window.resize(*size);
  window.panes().restoreDefaultLayout();
  return true;
}

/// Errors: an ending that is of no drawing, or a scale that none has.
Result<ui::DrawingOptions> drawingOptions(const QCommandLineParser& parser) {
  const QString path = parser.value("drawing");
  const auto format = ui::drawingFormatOf(path);
  if (!format)
    return Error{QApplication::translate("main", "--drawing %1: expected a name that ends in .svg, .png or .pdf.")
                     .arg(path)
                     .toStdString()};
  ui::DrawingOptions options{.format = *format,
                             .isDark = parser.value("theme") == "dark",
                             .embedsPipeline = !parser.isSet("without-pipeline")};
  if (!parser.isSet("scale")) return options;
  options.scale = parser.value("scale").toInt();
  if (options.scale >= 1 && options.scale <= ui::kLargestDrawingScale) return options;
  return Error{QApplication::translate("main", "--scale %1: expected a whole number from 1 to %2 for a drawing.")
                   .arg(parser.value("scale"))
                   .arg(ui::kLargestDrawingScale)
                   .toStdString()};
}

/// Errors: those of drawingOptions().
Result<ScreenshotRequest> screenshotRequest(const QCommandLineParser& parser) {
  ScreenshotRequest request{.outPath = parser.value("screenshot"),
                            .selection = parser.value("select"),
                            .pane = parser.value("pane"),
                            .run = runBefore(parser),
                            .tensor = parser.value("capture")};
  if (!parser.isSet("drawing")) return request;
  const Result<ui::DrawingOptions> options = drawingOptions(parser);
  if (!options) return options.error();
  request.outPath = parser.value("drawing");
  request.drawing = *options;
  return request;
}

/// Help and version are text, which needs no display.
bool isTextAsked(int argc, char** argv) {
  constexpr std::array<std::string_view, 5> kOptions = {"-h", "--help", "--help-all", "-v", "--version"};
  const auto end = std::find(argv + 1, argv + argc, std::string_view("--"));  // files follow
  return std::any_of(argv + 1, end,
                     [&](std::string_view each) { return std::ranges::find(kOptions, each) != kOptions.end(); });
}

int printText(int argc, char** argv) {
  const QCoreApplication app(argc, argv);
  nameApplication();
  QCommandLineParser parser;
  addOptions(parser);
  parser.parse(QCoreApplication::arguments());
  if (parser.isSet("version")) parser.showVersion();
  parser.showHelp();
}

/// ssh asks this program, under another name, for what has no terminal to be asked on. Variables of the user's stay.
void answerForSsh(const QTemporaryDir& folder) {
  const QString name = folder.filePath(QString::fromLatin1(ui::kAskPassName));
  if (qEnvironmentVariableIsSet("SSH_ASKPASS") || !QFile::link(QApplication::applicationFilePath(), name)) return;
  qputenv("SSH_ASKPASS", QFile::encodeName(name));
  if (!qEnvironmentVariableIsSet("SSH_ASKPASS_REQUIRE")) qputenv("SSH_ASKPASS_REQUIRE", "prefer");
}

/// In the looks of the designer.
int askForSsh(int argc, char** argv) {
  ui::Theme theme;
  theme.apply(keptTheme());
  return ui::askPass(argc > 1 ? QString::fromLocal8Bit(argv[1]) : QString());
}

bool isAskPass(const char* program) { return std::string_view(program).ends_with(ui::kAskPassName); }

int refuse(const QString& sentence) {
  QTextStream(stderr) << QString::fromStdString(visibleText(sentence.toStdString())) << Qt::endl;
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  if (isTextAsked(argc, argv)) return printText(argc, argv);
  applyScale(argc, argv);
  ui::GuardedApplication app(argc, argv);
  nameApplication();
  QApplication::setApplicationDisplayName("Fuseline");
  QApplication::setDesktopFileName(QString::fromLatin1(ui::kDesktopId));
  QApplication::setWindowIcon(
      QIcon::fromTheme(QString::fromLatin1(ui::kDesktopId), QIcon(QStringLiteral(":/icons/fuseline.svg"))));
  if (isAskPass(argv[0])) return askForSsh(argc, argv);
  QCommandLineParser parser;
  addOptions(parser);
  parser.process(app);
  if (isPicture(parser))  // before nobody who could close a box
    app.setReport([](const QString& sentence) { QApplication::exit(refuse(sentence)); });

  if (const Result<void> theme = checkTheme(parser); !theme)
    return refuse(QString::fromStdString(theme.error().message));
  if (parser.isSet("reset-settings")) QSettings().clear();
  if (isShownElsewhere(parser)) return EXIT_SUCCESS;
  const Result<ui::Density> density = densityChoice(parser);
  if (!density) return refuse(QString::fromStdString(density.error().message));
  const QTemporaryDir askPassFolder;
  answerForSsh(askPassFolder);
  ui::Theme theme;
  theme.apply(themeChoice(parser));
  if (*density != theme.density()) theme.setDensity(*density);
  const ui::SystemPalette systemPalette(theme);
  const std::unique_ptr<BackendRegistry> registry = makeBackendRegistry();
  ui::Session session(
      {.workerCommand = workerCommand(parser),
       .capabilitiesOf = [&registry](const std::string& device) { return registry->capabilities(device); },
       .layOut = graphLayout()});
  std::optional<ui::Autosave> autosave;
  if (!isPicture(parser)) autosave.emplace(session, journalFolder());
  ui::MainWindow window(session, theme, isPicture(parser) ? ui::Persistence::None : ui::Persistence::Settings);
  window.files().setExampleFolders(exampleFolders());
  window.files().setWindowOpener([&parser](const QString& path) { return openWindow(parser, path); });
  if (autosave) window.offerRecovery(*autosave);
  if (!resizeTo(window, parser.value("size")))
    return refuse(QApplication::translate("main", "--size %1: expected width and height, such as 1500x940.")
                      .arg(parser.value("size")));
  if (parser.isSet("workspace") && !window.findChild<ui::Workspaces*>()->show(parser.value("workspace")))
    return refuse(QApplication::translate("main", "--workspace %1: expected design, explain, profile or compare.")
                      .arg(parser.value("workspace")));
  std::optional<OpenOnce> openOnce;
  if (!isPicture(parser)) openOnce.emplace(session, window);
  ui::DBusDesktop desktop;
  const ui::RunNotice notice(session, window, desktop);
  std::optional<Screenshot> screenshot;
  if (isPicture(parser)) {
    Result<ScreenshotRequest> request = screenshotRequest(parser);
    if (!request) return refuse(QString::fromStdString(request.error().message));
    screenshot.emplace(std::move(*request), window, session);
  }
  window.show();
  if (autosave) followSession(app, parser, session, *autosave);
  const QStringList files = parser.positionalArguments();
  const bool isReopened = reopenLast(parser, window, autosave);
  if (!isReopened && !openFirst(window, session, files) && isPicture(parser))
    return refuse(window.message());  // there is nothing to take a picture of
  if (!isPicture(parser)) window.files().openWindows(files.mid(1));
  if (!isReopened) offerStartPage(window, autosave, files);
  if (parser.isSet("compare") && !window.compareWith(parser.value("compare")) && isPicture(parser))
    return refuse(window.message());
  if (const Result<void> pinned = pinBaselines(parser, session); !pinned)
    return refuse(QString::fromStdString(pinned.error().message));
  if (!isPicture(parser) && parser.isSet("pane")) window.showPane(parser.value("pane"));
  session.runner().worker().requestDevices();
  return QApplication::exec();
}
